package matchers_test

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// snowfall is a custom resource with the conditions of today.
type snowfall struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            snowfallStatus `json:"status,omitempty"`
}

type snowfallStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (s *snowfall) DeepCopyObject() runtime.Object {
	c := *s
	return &c
}

func web() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
}

// untyped is the same object as unstructured content.
func untyped(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	assert.NoError(t, err)
	return &unstructured.Unstructured{Object: content}
}

// failure is what a test would be told; nothing if it would pass.
func failure(assertion func(gomega.Gomega)) string {
	var message string
	assertion(gomega.NewGomega(func(m string, _ ...int) { message = m }))
	return strings.ReplaceAll(message, "\u00a0", " ") // go-cmp writes either
}

func to(actual any, matcher types.GomegaMatcher) string {
	return failure(func(g gomega.Gomega) { g.Expect(actual).To(matcher) })
}

func notTo(actual any, matcher types.GomegaMatcher) string {
	return failure(func(g gomega.Gomega) { g.Expect(actual).NotTo(matcher) })
}
