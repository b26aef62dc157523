package label

import (
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest/client"
	"snowglobe.test/envtest/client/controllerruntime/envtest"
)

// TestStoreLikeEtcd deletes a Pod on a store that takes etcd's time for each of the two writes:
// in between, informers have a Pod that is being deleted.
func TestStoreLikeEtcd(t *testing.T) {
	environment := &envtest.Environment{
		Options: []client.Option{client.WithFaults("delay store/put by=1ms optional", "delay store/delete by=1ms optional")},
	}
	config := start(t, environment)
	pods := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(metav1.NamespaceDefault)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "flake"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "snow", Image: "snow"}}},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	trace, err := environment.Snowglobe().Trace(t.Context(), client.TraceText)
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range []string{"put", "delete"} {
		if !regexp.MustCompile(`store/` + write + ` pods default/flake +held`).MatchString(trace) {
			t.Errorf("no store/%s of the Pod has waited:\n%s", write, trace)
		}
	}
}
