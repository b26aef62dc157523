package nodes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// addresses are those of nodes. The range is reserved for benchmarks of networks (RFC 2544), so
// nothing can be reached there.
var addresses = netip.MustParsePrefix("198.18.0.0/15")

// A kubelet's lease, and how often it renews it.
const (
	leaseDuration = 40 * time.Second
	heartbeat     = 10 * time.Second
)

// capacity is what a node has room for.
var capacity = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("32"),
	corev1.ResourceMemory:           resource.MustParse("256Gi"),
	corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	corev1.ResourcePods:             resource.MustParse("110"),
}

// node is one of the nodes.
type node struct {
	name, address string
	exists        context.Context // until its object is deleted
	remove        context.CancelFunc
}

func newNode(ctx context.Context, i int) *node {
	n := &node{name: fmt.Sprintf("node-%d", i), address: fmt.Sprintf("198.%d.%d.%d", 18+i/62500%2, i/250%250, i%250+1)}
	n.exists, n.remove = context.WithCancel(ctx)
	return n
}

// Dial says of a node's address that nothing can be reached there, and dials all others. It is for
// envtest.WithDialer: kubectl logs and exec then fail with that, and not with a network's error.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if at, err := netip.ParseAddrPort(address); err == nil && addresses.Contains(at.Addr()) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(at), Err: errSimulated}
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, address)
}

var errSimulated = errors.New("the node is simulated: its Pods have no containers that run, and so no logs and nothing to exec in or connect to")

// register creates a node, or takes one over, and says that it is ready.
func (n *Nodes) register(ctx context.Context, node *node) error {
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.name, Labels: map[string]string{
		corev1.LabelHostname: node.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	nodes := n.client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Controllers write to it too, from the first moment on.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := nodes.Get(ctx, node.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.setReady(node, now)
		_, err = nodes.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	if err := n.untaint(ctx, node.name); err != nil {
		return err
	}
	return n.renewLease(ctx, node.name)
}

// setReady is what a kubelet reports of a node that is well.
func (n *Nodes) setReady(node *node, object *corev1.Node) {
	now := metav1.NewTime(time.Now())
	condition := func(kind corev1.NodeConditionType, value corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: value, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	status := &object.Status
	status.Capacity, status.Allocatable = capacity, capacity
	status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: node.address}}
	status.Conditions = []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
	}
	id := string(object.UID)
	status.NodeInfo = corev1.NodeSystemInfo{
		KubeletVersion: n.release, ContainerRuntimeVersion: "simulated://" + n.release, OperatingSystem: "linux", Architecture: "amd64",
		OSImage: "simulated", KernelVersion: "simulated", MachineID: id, SystemUUID: id, BootID: id,
	}
}

// untaint takes away the taint that admission gives to a node that is not ready yet.
func (n *Nodes) untaint(ctx context.Context, name string) error {
	patch := []byte(`{"spec":{"taints":null}}`)
	_, err := n.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// renew keeps a node's lease, by which the node lifecycle controller knows that it lives, until
// the node is deleted.
func (n *Nodes) renew(node *node) {
	for sleep(node.exists, n.config.Heartbeat) {
		_ = n.renewLease(n.ctx, node.name) // a failure is made up for by the next renewal
	}
}

// renewLease updates the lease of a node, or creates it if there is none and the node exists.
func (n *Nodes) renewLease(ctx context.Context, name string) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NewMicroTime(time.Now())
	seconds := int32(leaseDuration.Seconds())
	spec := coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return n.createLease(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
	}
	if err != nil {
		return err
	}
	lease.Spec = spec
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

func (n *Nodes) createLease(ctx context.Context, lease *coordinationv1.Lease) error {
	node, err := n.client.CoreV1().Nodes().Get(ctx, lease.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	lease.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(node, corev1.SchemeGroupVersion.WithKind("Node"))}
	lease.OwnerReferences[0].Controller, lease.OwnerReferences[0].BlockOwnerDeletion = nil, nil // as a kubelet's
	_, err = n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{})
	return err
}
