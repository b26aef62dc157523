package controllers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllers"
	"snowglobe.test/envtest/nodes"
)

// cluster is what the tests share: a control plane in virtual time with controllers and,
// for Pods, a scheduler and nodes.
type cluster struct {
	*testing.T
	cp     *envtest.ControlPlane
	client *kubernetes.Clientset
}

func newCluster(t *testing.T, cp *envtest.ControlPlane) cluster {
	return cluster{t, cp, kubernetes.NewForConfigOrDie(cp.Config())}
}

// simulate runs a test with controllers in virtual time.
func simulate(t *testing.T, test func(c cluster), named ...string) {
	t.Helper()
	simulateWith(t, nil, test, named...)
}

func simulateWith(t *testing.T, opts []envtest.Option, test func(c cluster), named ...string) {
	t.Helper()
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		controllers.Start(t, cp, named...)
		test(newCluster(t, cp))
	}, opts...)
}

// simulateNodes adds a scheduler and three nodes.
func simulateNodes(t *testing.T, script func(*corev1.Pod) nodes.Script, test func(c cluster), named ...string) {
	t.Helper()
	simulate(t, func(c cluster) {
		controllers.StartScheduler(c.T, c.cp)
		nodes.Start(c.T, c.cp.Config(), nodes.Config{Count: 3, Script: script, Heartbeat: -1})
		test(c)
	}, named...)
}

// eventually waits, in virtual time, until a condition holds.
func (c cluster) eventually(within time.Duration, condition func() (bool, error)) {
	c.Helper()
	var err error
	for begin := time.Now(); time.Since(begin) < within; time.Sleep(100 * time.Millisecond) {
		var ok bool
		if ok, err = condition(); ok {
			return
		}
	}
	require.FailNow(c, "not in time", "within %s: %v", within, err)
}

func (c cluster) pods(selector string) []corev1.Pod {
	c.Helper()
	list, err := c.client.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{LabelSelector: selector})
	require.NoError(c, err)
	return list.Items
}

func podTemplate(image string, labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}
