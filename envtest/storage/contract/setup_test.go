package contract

//lint:file-ignore SA1019 upstream's contract still names selfLink

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/feature"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/utils/clock"
)

const (
	resourcePrefix = "/pods/"
	// valuePrefix is what the transformer puts before each value.
	valuePrefix = "test!"
	// awaitTimeout bounds await, whose conditions should hold within moments.
	awaitTimeout = time.Minute
)

// pods is the resource of the contract.
var pods = schema.GroupResource{Resource: "pods"}

// codecFor returns a codec of upstream's example pods.
func codecFor(binary bool) runtime.Codec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	codecs := serializer.NewCodecFactory(scheme)
	versions := schema.GroupVersions{examplev1.SchemeGroupVersion}
	if binary {
		pb := protobuf.NewSerializer(scheme, scheme)
		return codecs.CodecForVersions(pb, pb, versions, nil)
	}
	return codecs.LegacyCodec(examplev1.SchemeGroupVersion)
}

func newPod() runtime.Object     { return &example.Pod{} }
func newPodList() runtime.Object { return &example.PodList{} }

// fixture is upstream's etcd3 store on a new store of the kind under test.
type fixture struct {
	storage.Interface
	client      *kubernetes.Client
	streams     *storagetesting.KVRecorder
	lists       *storagetesting.KubernetesRecorder
	pages       *pageCounter
	codec       runtime.Codec
	pathPrefix  string
	transformer *swappableTransformer
}

// settings are what a case may set; zero values mean the defaults.
type settings struct {
	codec       runtime.Codec
	pathPrefix  string
	transformer value.Transformer
}

func setUp(t *testing.T, open opener, want settings) *fixture {
	t.Helper()
	s := &fixture{client: open(t), codec: want.codec, pathPrefix: want.pathPrefix, transformer: &swappableTransformer{}}
	if s.codec == nil {
		s.codec = codecFor(false)
	}
	if want.transformer == nil {
		want.transformer = newPrefixTransformer()
	}
	s.transformer.set(want.transformer)
	s.pages = &pageCounter{Interface: s.client.Kubernetes}
	s.lists = storagetesting.NewKubernetesRecorder(s.pages)
	s.streams = storagetesting.NewKVRecorder(s.client.KV, s.lists)
	s.client.KV, s.client.Kubernetes = s.streams, s.lists
	asked := &statusCounter{Maintenance: s.client.Maintenance}
	s.client.Maintenance = asked
	compactor := etcd3.NewCompactor(s.client.Client, 0, clock.RealClock{}, nil)
	t.Cleanup(compactor.Stop)
	leases := etcd3.NewDefaultLeaseManagerConfig()
	leases.ReuseDurationSeconds = 1 // the contract waits for leases to end
	versioner := storage.APIObjectVersioner{}
	store, err := etcd3.New(s.client, compactor, s.codec, newPod, newPodList, s.pathPrefix, resourcePrefix, pods,
		s.transformer, leases, etcd3.NewDefaultDecoder(s.codec, versioner), versioner)
	must(t, err)
	t.Cleanup(store.Close)
	s.Interface = store
	// Upstream checks each new endpoint for progress support in the background, and
	// bypasses the watch cache until it knows. With several endpoints, checks that
	// outlive the case would fail, and their retries race for the backoff they share.
	endpoints := int64(len(s.client.Endpoints()))
	await(context.Background(), t, "every endpoint to support progress requests", func() bool {
		all := endpoints == 1 || asked.answers.Load() >= endpoints
		return all && feature.DefaultFeatureSupportChecker.Supports(storage.RequestWatchProgress)
	})
	return s
}

// invariants checks a stored object, as upstream's own etcd3 test does.
func (s *fixture) invariants(ctx context.Context, t *testing.T, key string) {
	got, err := s.client.KV.Get(ctx, key)
	require.NoError(t, err, "get %s", key)
	require.NotEmpty(t, got.Kvs, "nothing is stored at %s", key)
	decoded, err := runtime.Decode(s.codec, got.Kvs[0].Value[len(valuePrefix):])
	require.NoError(t, err, "decode %s", got.Kvs[0].Value)
	pod := decoded.(*example.Pod)
	assert.Empty(t, pod.ResourceVersion, "the resource version it is stored with")
	assert.Empty(t, pod.SelfLink, "the self link it is stored with")
}

// calls checks how many objects were read in how many requests, as upstream's own
// etcd3 test does: pages double in size up to 10,000.
func (s *fixture) calls(t *testing.T, pageSize, objects uint64) {
	assert.Equal(t, objects, s.transformer.prefix().GetReadsAndReset(), "objects that were read")
	requests := uint64(1)
	if pageSize != 0 {
		for page, sum := pageSize, uint64(1); sum < objects; requests++ {
			page = min(2*page, 10_000)
			sum += page
		}
	}
	require.Equal(t, requests, s.pages.sent.Swap(0)+s.streams.GetStreamReadsAndReset(), "requests that were sent")
}

// pageCounter counts requests for a page of a list. Upstream's recorder counts KV
// calls, which an in-process client does not make for a page.
type pageCounter struct {
	kubernetes.Interface
	sent atomic.Uint64
}

// List implements kubernetes.Interface.
func (p *pageCounter) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	p.sent.Add(1)
	return p.Interface.List(ctx, prefix, opts)
}

// statusCounter counts successful answers about an endpoint's status.
type statusCounter struct {
	clientv3.Maintenance
	answers atomic.Int64
}

// Status implements clientv3.Maintenance.
func (s *statusCounter) Status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	resp, err := s.Maintenance.Status(ctx, endpoint)
	if err == nil {
		s.answers.Add(1)
	}
	return resp, err
}

// increaseRV makes a write outside the resource.
func (s *fixture) increaseRV(ctx context.Context, t *testing.T) int64 {
	resp, err := s.client.KV.Put(ctx, "increaseRV", "ok")
	require.NoError(t, err, "increase the revision")
	return resp.Header.Revision
}

// compact compacts as the API server does, and waits until the store has noticed.
func (s *fixture) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	rev := revision(t, resourceVersion)
	var known int64
	for range 2 { // the first call may only learn the compaction key's version
		version, _, compacted, err := etcd3.Compact(ctx, s.client.Client, known, rev)
		require.NoError(t, err, "compact at %d", rev)
		if compacted == rev {
			break
		}
		known = version
	}
	if !utilfeature.DefaultFeatureGate.Enabled(features.ListFromCacheSnapshot) {
		return // nothing watches for compactions
	}
	await(ctx, t, "the store to notice the compaction", func() bool { return s.CompactRevision() == rev })
}

// keys lists the resource's keys, as the watch cache does for the store.
func (s *fixture) keys(ctx context.Context) ([]string, error) {
	got, err := s.client.KV.Get(ctx, s.pathPrefix+resourcePrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, kv := range got.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys, nil
}

func revision(t *testing.T, resourceVersion string) int64 {
	t.Helper()
	rev, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	must(t, err)
	return int64(rev)
}

// await polls until a condition holds, for which upstream has no event.
func await(ctx context.Context, t *testing.T, what string, condition func() bool) {
	t.Helper()
	holds := func(context.Context) (bool, error) { return condition(), nil }
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, awaitTimeout, true, holds)
	require.NoError(t, err, "wait for %s", what)
}
