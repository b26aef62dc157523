package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// storageClass is the class of simulated volumes, which have no storage behind them, and
// provisioner is their provisioner: this package.
const (
	storageClass = "simulated"
	provisioner  = "simulated.snowglobe.test"
)

// Annotations by which controllers and provisioners communicate.
const (
	annDefaultClass  = "storageclass.kubernetes.io/is-default-class"
	annProvisioner   = "volume.kubernetes.io/storage-provisioner" // of a claim: who is to make its volume
	annProvisionedBy = "pv.kubernetes.io/provisioned-by"          // of a volume: who has made it
)

func (n *Nodes) createStorageClass(ctx context.Context) error {
	classes := n.client.StorageV1().StorageClasses()
	list, err := classes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: storageClass, Annotations: map[string]string{annDefaultClass: "true"}},
		Provisioner: provisioner, ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: new(storagev1.VolumeBindingImmediate),
	}
	for _, other := range list.Items {
		if other.Annotations[annDefaultClass] == "true" {
			class.Annotations = nil
		}
	}
	if _, err = classes.Create(ctx, class, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// watchVolumes makes the volumes of claims, and deletes those whose claims are gone.
func (n *Nodes) watchVolumes() error {
	core := n.informer.Core().V1()
	claim := func(object any) {
		if claim := object.(*corev1.PersistentVolumeClaim); claim.Annotations[annProvisioner] == provisioner && claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil {
			n.work.Go(func() { n.provision(claim) })
		}
	}
	volume := func(object any) {
		if v := object.(*corev1.PersistentVolume); v.Annotations[annProvisionedBy] == provisioner && v.Status.Phase == corev1.VolumeReleased && v.DeletionTimestamp == nil {
			n.work.Go(func() { n.unprovision(v) })
		}
	}
	for informer, see := range map[cache.SharedIndexInformer]func(any){core.PersistentVolumeClaims().Informer(): claim, core.PersistentVolumes().Informer(): volume} {
		handler := cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, object any) { see(object) }}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	return nil
}

// provision makes the volume of a claim. It makes no second one, since the volume's name comes
// from the claim's UID.
func (n *Nodes) provision(claim *corev1.PersistentVolumeClaim) {
	name := "pvc-" + string(claim.UID)
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annProvisionedBy: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode, StorageClassName: ptr.Deref(claim.Spec.StorageClassName, ""),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: provisioner, VolumeHandle: name}},
		},
	}
	n.insist(n.ctx, func() error {
		_, err := n.client.CoreV1().PersistentVolumes().Create(n.ctx, volume, metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err):
			return nil
		case apierrors.IsInvalid(err):
			klog.ErrorS(err, "the volume of a claim can't be made", "claim", klog.KObj(claim))
			return nil
		}
		return err
	})
}

func (n *Nodes) unprovision(volume *corev1.PersistentVolume) {
	n.insist(n.ctx, func() error {
		return n.client.CoreV1().PersistentVolumes().Delete(n.ctx, volume.Name, metav1.DeleteOptions{})
	})
}
