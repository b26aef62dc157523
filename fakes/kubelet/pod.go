package kubelet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/fakes/stub"
)

// Pod is a pod that runs on the node.
type Pod struct {
	Namespace, Name string
	// UID is compared with that of requests that carry one, if neither is empty.
	UID types.UID
	// Containers are those of the pod, each with a name of its own.
	Containers []*Container
	// Ports are the ports that something listens on, with what to do about a
	// connection. The context ends when the client leaves. The error is told to the
	// client; after stub.ErrBreak the whole connection is broken off.
	Ports map[int]func(ctx context.Context, conn net.Conn) error
	// Object is what /pods shows. Nil means one made of the fields above.
	Object *corev1.Pod
}

// Container is a container of a pod. The functions may not change once the pod has
// been added; rules of the kubelet's table can say otherwise for single requests.
type Container struct {
	Name string
	// Exec plays the processes that exec and run start.
	Exec ProcessFunc
	// Attach plays the process that was there from the beginning.
	Attach ProcessFunc
	// Log is what the container has written.
	Log Log
}

// AddPod adds a pod, in place of one of the same namespace and name.
func (k *Kubelet) AddPod(pod *Pod) error {
	if pod.Namespace == "" || pod.Name == "" {
		return fmt.Errorf("add pod %q of namespace %q to a kubelet: it needs both", pod.Name, pod.Namespace)
	}
	seen := map[string]bool{}
	for i, c := range pod.Containers {
		if c.Name == "" || seen[c.Name] {
			return fmt.Errorf("add pod %s/%s to a kubelet: container %d has the name %q: it needs one of its own", pod.Namespace, pod.Name, i, c.Name)
		}
		seen[c.Name] = true
	}
	k.RemovePod(pod.Namespace, pod.Name)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = append(k.pods, pod)
	return nil
}

// RemovePod forgets a pod, if there is one. What runs in it goes on.
func (k *Kubelet) RemovePod(namespace, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = slices.DeleteFunc(k.pods, func(p *Pod) bool { return p.Namespace == namespace && p.Name == name })
}

// pod returns the pod of a request, or the error of a kubelet that has none.
func (k *Kubelet) pod(request Request) (*Pod, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.Namespace != request.Namespace || p.Name != request.Pod {
			continue
		}
		if request.UID != "" && p.UID != "" && request.UID != string(p.UID) {
			return nil, text(http.StatusNotFound, "pod not found")
		}
		return p, nil
	}
	if request.Verb == "containerLogs" {
		return nil, text(http.StatusNotFound, "pod %q does not exist", request.Pod)
	}
	return nil, text(http.StatusNotFound, "pod does not exist")
}

// container returns the container of a request, or the error of a kubelet.
func (p *Pod) container(request Request) (*Container, error) {
	for _, c := range p.Containers {
		if c.Name == request.Container {
			return c, nil
		}
	}
	if request.Verb == "containerLogs" {
		return nil, text(http.StatusNotFound, "container %q not found in pod %q", request.Container, request.Pod)
	}
	return nil, text(http.StatusInternalServerError, "container not found (%q)", request.Container)
}

// object is what /pods shows of the pod.
func (p *Pod) object(node string) corev1.Pod {
	if p.Object != nil {
		return *p.Object
	}
	object := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range p.Containers {
		object.Spec.Containers = append(object.Spec.Containers, corev1.Container{Name: c.Name})
	}
	return object
}

// answer answers a request to which no rule gives an answer.
func (k *Kubelet) answer(_ context.Context, request Request) (Answer, error) {
	switch request.Verb {
	case "containerLogs", "exec", "attach", "run", "portForward":
	default:
		return k.page(request)
	}
	pod, err := k.pod(request)
	if err != nil {
		return Answer{}, err
	}
	if request.Verb == "portForward" {
		return Answer{Forward: pod.forward}, nil
	}
	container, err := pod.container(request)
	if err != nil {
		return Answer{}, err
	}
	switch request.Verb {
	case "containerLogs":
		return container.logs(request.Query)
	case "attach":
		return Answer{Process: container.Attach}, nil
	default:
		return Answer{Process: container.Exec}, nil
	}
}

// forward hands a connection to what listens on the port.
func (p *Pod) forward(ctx context.Context, port int, conn net.Conn) error {
	handle := p.Ports[port]
	if handle == nil {
		return fmt.Errorf("nothing listens on port %d of pod %s/%s: set Pod.Ports[%d]", port, p.Namespace, p.Name, port)
	}
	return handle(ctx, conn)
}

// text is an answer in plain text, as most of a kubelet's errors are.
func text(code int, format string, args ...any) error {
	return stub.Status{
		Code:   code,
		Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
		Body:   fmt.Appendf(nil, format, args...),
	}
}
