package envtest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/internal/sample"
)

// TestQuorum boots on an etcd cluster that lacks a member, takes a second one
// away, and gives it back: the server turns red, says why writes fail, and heals
// without a restart. An informer goes on where it was.
func TestQuorum(t *testing.T) {
	sample.Long(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	store, err := cluster.New(cluster.Config{})
	require.NoError(t, err)
	require.NoError(t, store.Start(ctx))
	t.Cleanup(func() {
		assert.NoError(t, store.Stop(context.WithoutCancel(ctx)))
	})
	require.NoError(t, store.StopMember(ctx, 0))
	cp := envtest.Start(t, envtest.WithStore(storage.Shared{Backend: store}))
	client := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1()
	create := func(name string) error {
		_, err := client.ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	seen := followObjects(ctx, t, cp, corev1.SchemeGroupVersion.WithResource("configmaps"))
	require.NoError(t, create("before"))

	require.NoError(t, store.StopMember(ctx, 1))
	awaitReadiness(ctx, t, cp, false)
	red := strings.Join(redChecks(t, cp), " ")
	assert.Contains(t, red, "etcd", "the checks that are red")
	lost := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lost"}}
	err = client.RESTClient().Post().Resource("namespaces").Param("timeout", "3s").Body(lost).Do(ctx).Error() // 34 s is the default
	// At the deadline upstream answers 504 or, when another of its own has begun to
	// do so, breaks the answer off.
	assert.True(t, apierrors.IsTimeout(err) || errors.Is(err, io.ErrUnexpectedEOF), "a write without quorum: %v", err)

	require.NoError(t, store.RestartMember(ctx, 1))
	awaitReadiness(ctx, t, cp, true)
	assert.NoError(t, create("after"), "a write with quorum again")
	seen.await(ctx, t, []string{"configmaps default/before", "configmaps default/after"}, "added")
}

// awaitReadiness asks until /readyz is as wanted. The checks of etcd take their
// timeout before they fail, so the server is asked every time it has answered.
func awaitReadiness(ctx context.Context, t *testing.T, cp *envtest.ControlPlane, want bool) {
	t.Helper()
	for {
		ready, red := cp.Servers()[0].Ready(ctx)
		if ready == want {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("ready is not %v; red: %v", want, red)
		}
	}
}
