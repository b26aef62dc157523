package label

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"snowglobe.test/envtest/client/controllerruntime/envtest"
)

// start starts a control plane that stops after the test.
func start(t *testing.T, environment *envtest.Environment) *rest.Config {
	t.Helper()
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	return config
}

// TestReconciler runs a manager, as a suite on controller-runtime's envtest does.
func TestReconciler(t *testing.T) {
	config := start(t, &envtest.Environment{})
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Reconciler{manager.GetClient()}).SetupWithManager(manager); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	configMaps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(metav1.NamespaceDefault)
	flake := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flake"}}
	if _, err := configMaps.Create(ctx, flake, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labelled, err := configMaps.Watch(ctx, metav1.ListOptions{LabelSelector: Label + "=yes", FieldSelector: "metadata.name=flake"})
	if err != nil {
		t.Fatal(err)
	}
	defer labelled.Stop()
	if event := <-labelled.ResultChan(); event.Object.(*corev1.ConfigMap).Name != "flake" {
		t.Errorf("the watch has %v", event)
	}
}
