package nodes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// nodeAddress is where every node is; nothing can be reached there.
const nodeAddress = "192.0.2.1"

// A kubelet's lease, and how often it renews it.
const (
	leaseDuration = 40 * time.Second
	heartbeat     = 10 * time.Second
)

// Config says which nodes to run. The zero value of each field means its default.
type Config struct {
	// Count is the number of nodes, one by default. They are called node-0 and so on.
	Count int
	// Script says how a Pod behaves. The default is the zero Script for all Pods.
	Script func(*corev1.Pod) Script
	// Heartbeat is how often a node renews its lease, 10 s by default. Negative means never:
	// the lease is not needed where no node lifecycle controller runs, and a day of virtual
	// time then takes less wall time.
	Heartbeat time.Duration
}

// capacity is what a node has room for.
var capacity = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("32"),
	corev1.ResourceMemory:           resource.MustParse("256Gi"),
	corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	corev1.ResourcePods:             resource.MustParse("110"),
}

// Nodes are running nodes. All methods may be called from any goroutine.
type Nodes struct {
	client   kubernetes.Interface
	config   Config
	names    []string
	ctx      context.Context
	end      context.CancelFunc
	informer informers.SharedInformerFactory
	work     sync.WaitGroup

	mu   sync.Mutex
	made int                         // addresses
	pods map[types.UID]chan struct{} // those that are played, and what terminates them
}

// Start starts nodes for a test, and stops them when it ends. The clients' configuration
// must be a cluster admin's.
func Start(t testing.TB, clients *rest.Config, config Config) *Nodes {
	t.Helper()
	n, err := Launch(t.Context(), clients, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	return n
}

// Launch is Start without a test; the caller stops the nodes.
func Launch(ctx context.Context, clients *rest.Config, config Config) (*Nodes, error) {
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(clients), "kubelet"))
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	config.Count, config.Heartbeat = cmp.Or(config.Count, 1), cmp.Or(config.Heartbeat, heartbeat)
	if config.Script == nil {
		config.Script = func(*corev1.Pod) Script { return Script{} }
	}
	n := &Nodes{client: client, config: config, pods: map[types.UID]chan struct{}{}}
	n.ctx, n.end = context.WithCancel(context.Background())
	for i := range config.Count {
		n.names = append(n.names, fmt.Sprintf("node-%d", i))
	}
	for _, name := range n.names {
		if err := n.register(ctx, name); err != nil {
			n.Stop()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if config.Heartbeat > 0 {
			n.work.Go(func() { n.renew(name) })
		}
	}
	if err := n.watch(ctx); err != nil {
		n.Stop()
		return nil, fmt.Errorf("nodes: %w", err)
	}
	return n, nil
}

// Stop ends the nodes at once, as a power failure would: their objects and their Pods stay
// as they are.
func (n *Nodes) Stop() {
	n.end()
	if n.informer != nil {
		n.informer.Shutdown()
	}
	n.work.Wait()
}

// register creates a node, or takes one over, and says that it is ready.
func (n *Nodes) register(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	nodes := n.client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Controllers write to it too, from the first moment on.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		setReady(&now.Status)
		_, err = nodes.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	if err := n.untaint(ctx, name); err != nil {
		return err
	}
	return n.renewLease(ctx, name)
}

// setReady is what a kubelet reports of a node that is well.
func setReady(status *corev1.NodeStatus) {
	now := metav1.NewTime(time.Now())
	status.Capacity, status.Allocatable = capacity, capacity
	status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeAddress}}
	status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
	}}
}

// untaint takes away the taint that admission gives to a node that is not ready yet.
func (n *Nodes) untaint(ctx context.Context, name string) error {
	patch := []byte(`{"spec":{"taints":null}}`)
	_, err := n.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// renew keeps a node's lease, by which the node lifecycle controller knows that it lives.
func (n *Nodes) renew(name string) {
	for sleep(n.ctx, n.config.Heartbeat, nil) {
		_ = n.renewLease(n.ctx, name) // the next time, else
	}
}

func (n *Nodes) renewLease(ctx context.Context, name string) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NewMicroTime(time.Now())
	spec := coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: ptr.To(int32(leaseDuration.Seconds())), RenewTime: &now}
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec = spec
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// watch plays the Pods that are bound to a node.
func (n *Nodes) watch(ctx context.Context) error {
	n.informer = informers.NewSharedInformerFactory(n.client, 0)
	pods := n.informer.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.see(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { n.see(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			n.forget(object.(*corev1.Pod))
		},
	})
	if err != nil {
		return err
	}
	n.informer.StartWithContext(n.ctx)
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return context.Cause(ctx)
	}
	return nil
}

// see begins to play a Pod that is new on a node, and terminates one that is deleted.
func (n *Nodes) see(pod *corev1.Pod) {
	if !slices.Contains(n.names, pod.Spec.NodeName) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	terminate, known := n.pods[pod.UID]
	if !known {
		terminate = make(chan struct{})
		n.pods[pod.UID] = terminate
		n.work.Go(func() { n.play(n.ctx, pod.DeepCopy(), terminate) })
	}
	if pod.DeletionTimestamp != nil && !closed(terminate) {
		close(terminate)
	}
}

// forget ends the play of a Pod that is gone.
func (n *Nodes) forget(pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if terminate, known := n.pods[pod.UID]; known && !closed(terminate) {
		close(terminate)
	}
	delete(n.pods, pod.UID)
}

// address returns one that no other Pod has.
func (n *Nodes) address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made++
	return fmt.Sprintf("10.244.%d.%d", n.made/250, n.made%250+1)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
