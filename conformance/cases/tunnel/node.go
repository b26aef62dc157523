package tunnel

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/fakes/kubelet"
)

const (
	nodeName    = "node-1"
	nodeIP      = "192.0.2.10" // TEST-NET-1: nothing else is there
	nodeAddress = nodeIP + ":10250"
)

// node is a node with a Pod "web" in a control plane of the case's own.
type node struct {
	*suite.T
	kubelet *kubelet.Kubelet
	app     *kubelet.Container
	pod     *kubelet.Pod
	path    string // of the Pod
}

// setting is what a case's control plane is like.
type setting struct {
	network *suite.Network // what the server reaches beside the kubelet; nil means nothing
	remote  bool           // the kubelet is not in it, but behind a proxy
	ca      []byte         // by which the server knows the kubelet; nil means the right one
	flags   []string
}

// newNode launches a control plane with a node, and returns the network that the node is in.
func newNode(ctx context.Context, t *suite.T, s setting) (*node, *suite.Network) {
	if s.network == nil {
		s.network = &suite.Network{}
	}
	of := s.network
	if s.remote {
		of = &suite.Network{}
	}
	n := &node{app: &kubelet.Container{Name: "app"}}
	var err error
	n.kubelet, err = kubelet.Serve(of.At(nodeAddress), kubelet.Config{Node: nodeName, Hosts: []string{nodeIP}})
	t.Must(err, "serve a kubelet")
	t.Cleanup(n.kubelet.Stop)
	if s.ca == nil {
		s.ca = n.kubelet.CA()
	}
	flags := append([]string{"--kubelet-certificate-authority=" + t.File("kubelet.crt", s.ca)}, s.flags...)
	_, n.T = t.Launch(ctx, s.network.Option(), envtest.WithFlags(flags...))
	n.addNode(ctx)
	n.addPod(ctx)
	return n, of
}

func (n *node) addNode(ctx context.Context) {
	suite.Create(ctx, n.T, n.Kube.CoreV1().Nodes().Create,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "192.0.2.99"},
				{Type: corev1.NodeInternalIP, Address: nodeIP}},
		}})
}

// addPod makes the Pod known to the server and to the kubelet.
func (n *node) addPod(ctx context.Context) {
	web := suite.Pod("web", "app", "side")
	web.Spec.NodeName = nodeName
	created := suite.Create(ctx, n.T, n.Kube.CoreV1().Pods("default").Create, web)
	n.path = "/api/v1/namespaces/default/pods/web"
	n.pod = &kubelet.Pod{Namespace: "default", Name: "web", UID: created.UID,
		Containers: []*kubelet.Container{n.app, {Name: "side"}}}
	n.Must(n.kubelet.AddPod(n.pod), "add Pod web to the kubelet")
}

// last is the request that came last to the kubelet.
func (n *node) last() kubelet.Request {
	calls := n.kubelet.Requests.Calls()
	if len(calls) == 0 {
		return kubelet.Request{}
	}
	return calls[len(calls)-1].Request
}
