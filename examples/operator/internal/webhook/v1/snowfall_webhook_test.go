package v1

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	snowv1 "example.com/operator/api/v1"
)

var _ = Describe("Snowfall", func() {
	It("gets a default", func() {
		snowfall := &snowv1.Snowfall{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "default"}}
		Expect(k8sClient.Create(ctx, snowfall)).To(Succeed())
		Expect(snowfall.Spec.Flakes).To(Equal(1))
	})

	It("is no blizzard", func() {
		snowfall := &snowv1.Snowfall{
			ObjectMeta: metav1.ObjectMeta{Name: "blizzard", Namespace: "default"}, Spec: snowv1.SnowfallSpec{Flakes: MaxFlakes + 1},
		}
		Expect(k8sClient.Create(ctx, snowfall)).To(MatchError(ContainSubstring("a blizzard")))
	})
})
