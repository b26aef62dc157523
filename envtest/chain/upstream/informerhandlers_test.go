package upstream

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// TestWrapHandlers wraps both handlers of an informer, behind the factory that the chain uses.
func TestWrapHandlers(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}}
	factory := LastingInformers(informers.NewSharedInformerFactory(fake.NewClientset(pod), 0))
	informer := factory.Core().V1().Pods().Informer()
	told := make(chan string, 4)
	for _, name := range []string{"a", "b"} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { told <- name }})
		require.NoError(t, err)
	}
	wrapped := 0
	wrap := func(of cache.SharedIndexInformer, handler cache.ResourceEventHandler) cache.ResourceEventHandler {
		wrapped++
		assert.Same(t, factory.InformerFor(&corev1.Pod{}, nil), of)
		return cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
			handler.OnAdd(object, false)
			told <- "after " + object.(*corev1.Pod).Name
		}}
	}
	require.NoError(t, WrapHandlers(factory, wrap))
	assert.Equal(t, 2, wrapped)
	factory.StartWithContext(t.Context())
	assert.ElementsMatch(t, []string{"a", "b", "after first", "after first"}, []string{<-told, <-told, <-told, <-told})
}
