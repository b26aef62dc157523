package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	snowv1 "example.com/operator/api/v1"
)

var _ = Describe("Snowfall", func() {
	flakes := func() int {
		GinkgoHelper()
		list := &corev1.ConfigMapList{}
		Expect(k8sClient.List(ctx, list, client.InNamespace("default"))).To(Succeed())
		return len(list.Items)
	}
	fall := func(n int) *snowv1.Snowfall {
		GinkgoHelper()
		snowfall := &snowv1.Snowfall{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "default"}, Spec: snowv1.SnowfallSpec{Flakes: n}}
		Expect(k8sClient.Create(ctx, snowfall)).To(Succeed())
		return snowfall
	}

	It("lets flakes fall", func() {
		snowfall := fall(3)
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(snowfall), snowfall)).To(Succeed())
			g.Expect(snowfall.Status.Fallen).To(Equal(3))
		}).Should(Succeed())
		Expect(flakes()).To(Equal(3))
	})

	It("finds nothing of the spec before", func() {
		Expect(flakes()).To(Equal(0))
		fall(1)
		Eventually(flakes).Should(Equal(1))
	})
})
