package nodes

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
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
	// Volumes makes a StorageClass, "simulated", the default one if there is no other, whose
	// volumes are made out of nothing. The controller persistentvolume-binder-controller binds
	// claims to them.
	Volumes bool
}

// Nodes are running nodes. All methods may be called from any goroutine.
type Nodes struct {
	client   kubernetes.Interface
	config   Config
	release  string // of the API server, and so of the kubelets
	nodes    map[string]*node
	ctx      context.Context
	end      context.CancelFunc
	informer informers.SharedInformerFactory
	work     sync.WaitGroup

	mu   sync.Mutex
	made int                              // addresses
	pods map[types.UID]context.CancelFunc // those that are played, and what terminates them
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
	n := &Nodes{client: client, config: config, nodes: map[string]*node{}, pods: map[types.UID]context.CancelFunc{}}
	n.ctx, n.end = context.WithCancel(context.Background())
	if err := n.start(ctx); err != nil {
		n.Stop()
		return nil, fmt.Errorf("nodes: %w", err)
	}
	return n, nil
}

func (n *Nodes) start(ctx context.Context) error {
	version, err := n.client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	n.release = version.GitVersion
	for i := range n.config.Count {
		node := newNode(n.ctx, i)
		if err := n.register(ctx, node); err != nil {
			return fmt.Errorf("%s: %w", node.name, err)
		}
		n.nodes[node.name] = node
		if n.config.Heartbeat > 0 {
			n.work.Go(func() { n.renew(node) })
		}
	}
	if n.config.Volumes {
		if err := n.createStorageClass(ctx); err != nil {
			return fmt.Errorf("StorageClass %s: %w", storageClass, err)
		}
	}
	return n.watch(ctx)
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

// watch plays the Pods that are bound to a node, and removes nodes that are deleted.
func (n *Nodes) watch(ctx context.Context) error {
	n.informer = informers.NewSharedInformerFactory(n.client, 0)
	pods := n.informer.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.see(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { n.see(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) { n.forget(deleted[*corev1.Pod](object)) },
	})
	if err != nil {
		return err
	}
	all := n.informer.Core().V1().Nodes().Informer()
	_, err = all.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if node := n.nodes[deleted[*corev1.Node](object).Name]; node != nil {
			node.remove()
		}
	}})
	if err != nil {
		return err
	}
	if n.config.Volumes {
		if err := n.watchVolumes(); err != nil {
			return err
		}
	}
	n.informer.StartWithContext(n.ctx)
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced, all.HasSynced) {
		return context.Cause(ctx)
	}
	return nil
}

// deleted returns the object of a handler's DeleteFunc.
func deleted[T any](object any) T {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	return object.(T)
}

// see begins to play a Pod that is new on a node, terminates one that is deleted, and looks at
// the readiness gates of one that has changed.
func (n *Nodes) see(pod *corev1.Pod) {
	node := n.nodes[pod.Spec.NodeName]
	if node == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	terminate, known := n.pods[pod.UID]
	if !known {
		var lives context.Context
		lives, terminate = context.WithCancel(n.ctx)
		n.pods[pod.UID] = terminate
		p := &player{Nodes: n, pod: pod.DeepCopy(), host: node.address, address: n.address(node, pod)}
		n.work.Go(func() { p.play(n.ctx, lives) })
	}
	if known && len(pod.Spec.ReadinessGates) > 0 && setReadiness(pod.Status.DeepCopy(), pod.Spec.ReadinessGates) {
		n.work.Go(func() { n.report(n.ctx, pod.DeepCopy(), func(*corev1.PodStatus) {}) })
	}
	if pod.DeletionTimestamp != nil {
		terminate()
	}
}

// forget ends the play of a Pod that is gone.
func (n *Nodes) forget(pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if terminate, known := n.pods[pod.UID]; known {
		terminate()
	}
	delete(n.pods, pod.UID)
}

// address returns one that no other Pod has, or the node's. The caller holds mu.
func (n *Nodes) address(node *node, pod *corev1.Pod) string {
	if pod.Spec.HostNetwork {
		return node.address
	}
	n.made++
	return fmt.Sprintf("10.244.%d.%d", n.made/250, n.made%250+1)
}
