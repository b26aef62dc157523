package envtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/embedded"
)

// TestSizeOfOwnStore asks a server in virtual time for its metrics, twice at once, beside a
// server outside that has an etcd: each tells the size of its own store.
func TestSizeOfOwnStore(t *testing.T) {
	t.Parallel()
	metrics := func(t *testing.T, cp *envtest.ControlPlane) {
		text, err := kubernetes.NewForConfigOrDie(cp.Config()).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		require.NoError(t, err)
		assert.Contains(t, string(text), `apiserver_storage_size_bytes{storage_cluster_id="etcd-0"}`)
	}
	outside := envtest.Start(t, envtest.WithStore(embedded.New(embedded.Config{})))
	metrics(t, outside)
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		ended := make(chan struct{})
		go func() { defer close(ended); metrics(t, cp) }()
		metrics(t, cp)
		<-ended
	})
	metrics(t, outside)
}

// TestSizeAfterFailedStart asks a server for its metrics when another has failed to start, after
// stages that set upstream's source of sizes for the whole process: that one would be asked for
// as long as upstream waits for a store that has ended.
func TestSizeAfterFailedStart(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		failAt(t, "run")
		failAt(t, "kube-apiserver-config")
		began := time.Now()
		_, err := kubernetes.NewForConfigOrDie(cp.Config()).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		require.NoError(t, err)
		assert.Less(t, time.Since(began), time.Second)
	})
}
