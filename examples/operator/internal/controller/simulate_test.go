package controller

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest/komega"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	snowglobe "snowglobe.test/envtest"

	snowv1 "example.com/operator/api/v1"
)

// A spec in virtual time: what takes half an hour here takes a second of ours, and gomega's
// Eventually and Consistently pass no time but that.
var _ = Describe("Snowfall in virtual time", func() {
	It("lets flakes fall after ten minutes without ConfigMaps", func() {
		begun := time.Now()
		Expect(snowglobe.SimulateContext(func(ctx context.Context, cp *snowglobe.ControlPlane) error {
			c, stop := startManager(ctx, cp)
			defer stop()
			_, err := cp.Faults().Inject("fail http/create resource=configmaps namespace=default with=503 for=10m")
			Expect(err).NotTo(HaveOccurred())
			snowfall := &snowv1.Snowfall{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "default"}, Spec: snowv1.SnowfallSpec{Flakes: 3}}
			Expect(c.Create(ctx, snowfall)).To(Succeed())

			flakes := func(g Gomega) []corev1.ConfigMap {
				list := &corev1.ConfigMapList{}
				g.Expect(c.List(ctx, list, client.InNamespace("default"))).To(Succeed())
				return list.Items
			}
			Consistently(flakes).WithTimeout(9 * time.Minute).WithPolling(time.Second).Should(BeEmpty())
			Eventually(flakes).WithTimeout(20 * time.Minute).WithPolling(time.Second).Should(HaveLen(3))

			// controller-runtime's komega waits for nothing else either.
			Eventually(komega.New(c).WithContext(ctx).Object(snowfall)).Should(HaveField("Status.Fallen", BeEquivalentTo(3)))
			owned := func(flake corev1.ConfigMap) bool { return metav1.IsControlledBy(&flake, snowfall) }
			Expect(flakes(Default)).To(HaveEach(Satisfy(owned)))
			return nil
		}, snowglobe.WithCRDPaths("../../config/crd/bases"))).To(Succeed())
		GinkgoWriter.Printf("it took %s\n", time.Since(begun))
	})
})

// startManager runs the controller until stop, and returns a client that has no cache.
func startManager(ctx context.Context, cp *snowglobe.ControlPlane) (c client.Client, stop func()) {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(cp.Config(), ctrl.Options{
		Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect((&SnowfallReconciler{mgr.GetClient()}).SetupWithManager(mgr)).To(Succeed())
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	c, err = client.New(cp.Config(), client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	return c, func() {
		cancel()
		Expect(<-ended).To(Succeed())
	}
}
