package bench

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/load"
	"snowglobe.test/envtest"
)

// TestInitialObjects has watchers get the objects that are there in each way that a client can.
func TestInitialObjects(t *testing.T) {
	for name, opts := range map[string]WatchOptions{
		"list": {Shape: load.Shape{Initial: load.InitialList}, Transport: TransportTLS},
		"list, decoded": {Shape: load.Shape{Initial: load.InitialList, Decode: true},
			Transport: TransportProcess},
		"list of widgets, decoded": {Shape: load.Shape{Initial: load.InitialList, Decode: true, Resource: "widgets"},
			Transport: TransportProcess},
		"list, compressed protobuf": {Shape: load.Shape{Initial: load.InitialList, Encoding: "protobuf",
			Compress: true}, Transport: TransportTLS},
		"stream": {Shape: load.Shape{Initial: load.InitialStream}, Transport: TransportTLS},
		"stream, selected": {Shape: load.Shape{Initial: load.InitialStream, Selectors: 2},
			Transport: TransportProcess},
		"stream, decoded protobuf": {Shape: load.Shape{Initial: load.InitialStream, Encoding: "protobuf",
			Decode: true}, Transport: TransportProcess},
		"stream of widgets, decoded": {Shape: load.Shape{Initial: load.InitialStream, Decode: true,
			Resource: "widgets"}, Transport: TransportProcess},
		"stream, compressed cbor": {Shape: load.Shape{Initial: load.InitialStream, Encoding: "cbor",
			Compress: true}, Transport: TransportTLS},
		"stream, compressed protobuf": {Shape: load.Shape{Initial: load.InitialStream, Encoding: "protobuf",
			Compress: true}, Transport: TransportProcess},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Watchers, opts.Writers, opts.Objects = small().Watchers, small().Writers, 30
			opts.Rate, opts.Duration = small().Rate, small().Duration
			report, err := Watch(t.Context(), opts)
			require.NoError(t, err)
			for _, load := range report.Loads {
				assert.EqualValues(t, 3, load.OpenLatency.Count, load.Transport)
				assert.Equal(t, load.Latency.Count, int64(load.Deliveries), load.Transport)
				assert.Positive(t, load.Deliveries, load.Transport)
			}
			decodes(t, report)
		})
	}
}

// answers counts the bytes that clients read.
type answers struct {
	mu         sync.Mutex
	list       int
	watch      int
	compressed int
}

func (a *answers) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(req)
		counter := &a.list
		switch {
		case err != nil || req.Method != http.MethodGet || req.URL.Query().Get("resourceVersion") == "":
			return response, err
		case response.Header.Get("Content-Encoding") == "gzip":
			counter = &a.compressed
		case req.URL.Query().Get("watch") != "":
			counter = &a.watch
		}
		response.Body = &countedBody{response.Body, func(n int) {
			a.mu.Lock()
			defer a.mu.Unlock()
			*counter += n
		}}
		return response, err
	})
}

type countedBody struct {
	io.ReadCloser
	add func(int)
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.add(n)
	return n, err
}

// TestInitialObjectsAreRead counts what three watchers read of thirty large objects.
func TestInitialObjectsAreRead(t *testing.T) {
	cp := envtest.Start(t)
	const large, all = 10_000, 3 * 30 * 10_000
	read := func(initial string, compress bool) *answers {
		opts, seen := small(), &answers{}
		opts.Duration, opts.Objects, opts.PayloadBytes = 20*time.Millisecond, 30, large
		opts.Initial, opts.Compress = initial, compress
		opts.Target = cp.Config()
		opts.Target.Wrap(seen.wrap)
		_, err := Watch(t.Context(), opts)
		require.NoError(t, err, initial)
		return seen
	}
	none := read(load.InitialNone, false)
	assert.Zero(t, none.list+none.compressed)
	assert.Less(t, none.watch, all/2)

	list := read(load.InitialList, false)
	assert.Greater(t, list.list, all)
	assert.Less(t, list.watch, all/2)
	list = read(load.InitialList, true)
	assert.Zero(t, list.list)
	assert.NotZero(t, list.compressed)
	assert.Less(t, list.compressed, all/10)

	stream := read(load.InitialStream, false)
	assert.Zero(t, stream.list+stream.compressed)
	assert.Greater(t, stream.watch, all)
	stream = read(load.InitialStream, true)
	assert.Zero(t, stream.watch)
	assert.NotZero(t, stream.compressed)
	assert.Less(t, stream.compressed, all/10)
}

// TestInitialObjectsEndEarly has a streaming list end with its first object.
func TestInitialObjectsEndEarly(t *testing.T) {
	cp := envtest.Start(t)
	for _, decode := range []bool{false, true} {
		opts := small()
		opts.Initial, opts.Decode, opts.Target = load.InitialStream, decode, cp.Config()
		opts.Target.Wrap(editFirstWatch(func(_ int, line string) (string, bool) { return line, true }))
		_, err := Watch(t.Context(), opts)
		assert.ErrorContains(t, err, "the watch ended before all initial objects had come")
	}
}
