package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/results"
	"snowglobe.test/bench/wire"
	"snowglobe.test/envtest"
	"snowglobe.test/internal/pages"
)

// small is a load that takes only a moment. Its events do not come all at once: a watch cache that is new
// ends a watch as soon as more than ten events wait for it, as upstream's time budget begins at nothing.
func small() WatchOptions {
	return WatchOptions{Shape: load.Shape{Watchers: 3, Writers: 2},
		Pace: load.Pace{Rate: 100, Duration: 210 * time.Millisecond}}
}

func TestWatchDeliversEverythingOnce(t *testing.T) {
	for name, opts := range map[string]WatchOptions{
		"json":              {Shape: load.Shape{Encoding: "json"}},
		"json, decoded":     {Shape: load.Shape{Encoding: "json", Decode: true}, Transport: TransportProcess},
		"protobuf, decoded": {Shape: load.Shape{Encoding: "protobuf", Decode: true}, Transport: TransportTLS},
		"cbor":              {Shape: load.Shape{Encoding: "cbor", Resource: "widgets"}, Transport: TransportTLS},
		"widgets, decoded":  {Shape: load.Shape{Resource: "widgets", Decode: true}, Transport: TransportProcess},
		"converted":         {Shape: load.Shape{Resource: "converted-widgets"}, Transport: TransportTLS},
		"pods":              {Shape: load.Shape{Resource: "pods", StreamsPerConnection: 2}, Transport: TransportTLS},
		"leases":            {Shape: load.Shape{Resource: "leases", Encoding: "protobuf"}, Transport: TransportProcess},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Watchers, opts.Writers = small().Watchers, small().Writers
			opts.Rate, opts.Duration = small().Rate, small().Duration
			report, err := Watch(t.Context(), opts)
			require.NoError(t, err)
			var transports []string
			for _, load := range report.Loads {
				transports = append(transports, load.Transport)
			}
			require.Equal(t, opts.withDefaults().transports(), transports)
			for _, load := range report.Loads {
				assert.Equal(t, 21, load.Events, "%s: want 21 events for 3 watchers, got %+v", load.Transport, load)
				assert.Equal(t, 63, load.Deliveries, "%s: want 21 events for 3 watchers, got %+v", load.Transport, load)
				assert.Equal(t, int64(63), load.Latency.Count, "%s: want 21 events for 3 watchers, got %+v",
					load.Transport, load)
				assert.Equal(t, int64(21), load.WriteLatency.Count, "%s: want 21 events for 3 watchers, got %+v",
					load.Transport, load)
				assert.Equal(t, 0, load.Lost+load.Duplicates+load.Reordered+load.Foreign+load.Restarts,
					"%s: defects: %+v", load.Transport, load)
				assert.Greater(t, load.Latency.P50, time.Duration(0), "%s: not measured: %+v", load.Transport, load)
				assert.GreaterOrEqual(t, load.Latency.Max, load.Latency.P50, "%s: not measured: %+v", load.Transport,
					load)
				assert.Equal(t, load.Transport == TransportTLS, load.Server.Apart, "%s: %+v", load.Transport,
					load.Server)
				assert.Positive(t, load.Server.CPU, "%s: not measured: %+v", load.Transport, load.Server)
				assert.Positive(t, load.Server.AllocsPerDelivery, "%s: not measured: %+v", load.Transport, load.Server)
			}
			decodes(t, report)
		})
	}
}

// TestWatchSelects has each watcher get the events of one label in one namespace.
func TestWatchSelects(t *testing.T) {
	opts := small()
	opts.Watchers, opts.Writers, opts.Namespaces, opts.Selectors, opts.Transport = 6, 7, 2, 3, TransportProcess
	report, err := Watch(t.Context(), opts)
	require.NoError(t, err)
	load := report.Loads[0]
	assert.Equal(t, 21, load.Deliveries, "each event goes to one watcher")
	assert.Zero(t, load.Lost+load.Duplicates+load.Reordered+load.Foreign+load.Restarts, "defects: %+v", load)
}

// TestWatchOnServers has writers and watchers on each of three servers.
func TestWatchOnServers(t *testing.T) {
	opts := small()
	opts.Servers, opts.Resource, opts.Transport = 3, "widgets", TransportTLS
	report, err := Watch(t.Context(), opts)
	require.NoError(t, err)
	for _, load := range report.Loads {
		assert.Equal(t, 63, load.Deliveries, load.Transport)
		assert.Contains(t, results.NameOf(load), "/servers=3", load.Transport)
	}
}

// TestWatchReportsDefects breaks a watch in every way that the measurement must notice.
func TestWatchReportsDefects(t *testing.T) {
	cp := envtest.Start(t)
	for _, decode := range []bool{false, true} {
		t.Run(fmt.Sprintf("decode=%t", decode), func(t *testing.T) { reportsDefects(t, cp, decode) })
	}
	nothingLeft(t, cp.Config())
}

func reportsDefects(t *testing.T, cp *envtest.ControlPlane, decode bool) {
	for name, test := range map[string]struct {
		edit edit
		want string
		diff results.WatchLoad // how the result differs from that of an intact watch
	}{
		"lost": {func(n int, line string) (string, bool) { return pick(n == 7, "", line), false },
			"missed 1 of 21 events, the first of them number 8", results.WatchLoad{Lost: 1}},
		"last lost": {func(n int, line string) (string, bool) { return pick(n == 20, "", line), false },
			"missed 1 of 21 events, the first of them number 21", results.WatchLoad{Lost: 1}},
		"repeated": {func(n int, line string) (string, bool) { return pick(n == 7, line+line, line), false },
			"saw 1 events again", results.WatchLoad{Duplicates: 1}},
		"swapped": {swap(), "saw 1 events after a newer one of the same object", results.WatchLoad{Reordered: 1}},
		"cut": {func(n int, line string) (string, bool) { return line, n == 7 }, "",
			results.WatchLoad{Restarts: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := small()
			opts.Decode = decode
			opts.Writers = 1 // so that events come in the order of their numbers
			opts.Drain = 200 * time.Millisecond
			opts.Target = cp.Config()
			opts.Target.Wrap(editFirstWatch(test.edit))
			report, err := Watch(t.Context(), opts)
			require.False(t, test.want == "" && err != nil, err)
			assert.False(t, test.want != "" && (!errors.Is(err, ErrDelivery) ||
				!strings.Contains(err.Error(), "1 of 3 watchers") || !strings.Contains(err.Error(), test.want)),
				"want an ErrDelivery of one watcher with %q, got %v", test.want, err)
			require.Len(t, report.Loads, 1, "the report of a broken load is missing: %+v", report)
			got := report.Loads[0]
			assert.Equal(t, test.diff.Lost, got.Lost, "got %+v, want %+v", got, test.diff)
			assert.Equal(t, test.diff.Duplicates, got.Duplicates, "got %+v, want %+v", got, test.diff)
			assert.Equal(t, test.diff.Reordered, got.Reordered, "got %+v, want %+v", got, test.diff)
			assert.Equal(t, test.diff.Restarts, got.Restarts, "got %+v, want %+v", got, test.diff)
		})
	}
}

// nothingLeft checks that loads on an existing cluster have cleaned up.
func nothingLeft(t *testing.T, config *rest.Config) {
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	objects, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, object := range objects.Items {
		assert.False(t, strings.HasPrefix(object.Namespace, "bench-watch-"), "ConfigMap %s/%s is left",
			object.Namespace, object.Name)
	}
	namespaces, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, namespace := range namespaces.Items {
		assert.False(t, strings.HasPrefix(namespace.Name, "bench-watch-") && namespace.DeletionTimestamp == nil,
			"namespace %s is left", namespace.Name)
	}
}

func TestWatchSaysWhatWentWrong(t *testing.T) {
	cp := envtest.Start(t)
	opts := small()
	opts.Target = cp.Config(envtest.User("jane"))
	_, err := Watch(t.Context(), opts)
	assert.False(t, !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "creating a namespace"),
		"a user without rights: %v", err)
	ctx, cancel := context.WithCancel(t.Context())
	opts.Target = cp.Config()
	opts.Duration = time.Hour
	opts.Rate = 1
	opts.Progress = writerFunc(func([]byte) { time.AfterFunc(50*time.Millisecond, cancel) })
	_, err = Watch(ctx, opts)
	assert.ErrorIs(t, err, context.Canceled, "a load that was cancelled")
	nothingLeft(t, cp.Config())
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func TestWatchRefuses(t *testing.T) {
	for want, opts := range map[string]WatchOptions{
		"-1 watchers":                 {Shape: load.Shape{Watchers: -1}},
		"-1 writers: give at least 1": {Shape: load.Shape{Writers: -1}},
		"3 writers are too few for 2 namespaces with 2 " +
			"selectors": {Shape: load.Shape{Writers: 3, Namespaces: 2, Selectors: 2}},
		`resource "pod" is unknown; did you mean pods?`: {Shape: load.Shape{Resource: "pod"}},
		"there is no protobuf of widgets": {Shape: load.Shape{Resource: "widgets",
			Encoding: "protobuf"}},
		"all must be positive": {Pace: load.Pace{Rate: -5}},
		"less than one event":  {Pace: load.Pace{Rate: 0.001}},
		"payload of -1 bytes":  {Shape: load.Shape{PayloadBytes: -1}},
		"more than 4294967296 deliveries": {Shape: load.Shape{Watchers: 100_000},
			Pace: load.Pace{Rate: 1e6}},
		`encoding "xml" is unknown`:     {Shape: load.Shape{Encoding: "xml"}},
		"client-go decodes no CBOR":     {Shape: load.Shape{Encoding: "cbor", Decode: true}},
		`transport "pigeon" is unknown`: {Transport: "pigeon"},
		`store "disk" is unknown`:       {Shape: load.Shape{Store: "disk"}},
		"has its own transport and store": {Shape: load.Shape{Store: measure.StoreMemory},
			Target: &rest.Config{}},
		"for 10s, with -1ns to drain:":   {Pace: load.Pace{Drain: -1}},
		"a share of 1.1 of the watchers": {Pace: load.Pace{Slow: 1.1}},
		"1 slow and 1 stalled of 2 watchers": {Shape: load.Shape{Watchers: 2},
			Pace: load.Pace{Slow: 0.5, Stalled: 0.5}},
		"baselines end no watch":                          {Pace: load.Pace{Slow: 0.5}, Baselines: true},
		"10 servers: give a number from 1 to 9":           {Shape: load.Shape{Servers: 10}},
		"stages are measured of one":                      {Shape: load.Shape{Servers: 2}, Stages: true},
		`initial objects "all": use none, list or stream`: {Shape: load.Shape{Initial: "all"}},
		"-1 objects: give a number from 1 to 1000000":     {Shape: load.Shape{Objects: -1}},
		"baselines know nothing of initial objects":       {Shape: load.Shape{Objects: 1}, Transport: BaselineStore},
		"compresses lists and streaming lists alone":      {Shape: load.Shape{Compress: true}},
		"leave out either compression or decoding": {Shape: load.Shape{Compress: true, Initial: load.InitialList,
			Decode: true}},
	} {
		_, err := Watch(t.Context(), opts)
		assert.False(t, err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "bench watch: "), "%+v: want %q, got %v", opts, want, err)
	}
}

// A load leaves no goroutine and no connection behind: neither on an existing cluster,
// nor on control planes of its own.
func TestWatchLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	_, err := Watch(t.Context(), small())
	require.NoError(t, err)
	goleak.VerifyNone(t, before)

	cp := envtest.Start(t, envtest.WithListener("127.0.0.1:0"))
	opts := small()
	opts.Target = cp.Config(envtest.User("loader", "system:masters"), envtest.Remote())
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	opts.Target.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			open[conn] = true
		}
		return conn, err
	}
	_, err = Watch(t.Context(), opts)
	require.NoError(t, err)
	assert.Len(t, open, opts.Watchers+opts.Writers+2, "an admin, and who reads the metrics")
	for conn := range open {
		assert.Error(t, conn.SetDeadline(time.Now()), "the connection from %s is still open", conn.LocalAddr())
	}
}

// edit changes the line of one event of a watch stream, and may end the stream. number
// is the event's, -1 if it has no stamp.
type edit func(number int, line string) (_ string, end bool)

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// swap lets event 7 come after event 8.
func swap() edit {
	held := ""
	return func(number int, line string) (string, bool) {
		switch number {
		case 7:
			held, line = line, ""
		case 8:
			line += held
		}
		return line, false
	}
}

// editFirstWatch edits the first watch that goes through it and no other.
func editFirstWatch(edit edit) func(http.RoundTripper) http.RoundTripper {
	var taken atomic.Bool
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err == nil && req.URL.Query().Get("watch") != "" && taken.CompareAndSwap(false, true) {
				resp.Body = &editedBody{ReadCloser: resp.Body, lines: bufio.NewReader(resp.Body), edit: edit}
			}
			return resp, err
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// editedBody is a stream of JSON lines, one for each event.
type editedBody struct {
	io.ReadCloser
	lines *bufio.Reader
	edit  edit
	ready bytes.Buffer
	ended bool
}

func (b *editedBody) Read(p []byte) (int, error) {
	for b.ready.Len() == 0 {
		if b.ended {
			return 0, io.EOF
		}
		line, err := b.lines.ReadString('\n')
		if err != nil {
			return 0, err
		}
		number := -1
		if at, ok, _ := wire.FindStamp([]byte(line)); ok {
			number = at.Number
		}
		line, b.ended = b.edit(number, line)
		b.ready.WriteString(line)
	}
	return b.ready.Read(p)
}

// TestWatchUnreachable has a target at which no server listens.
func TestWatchUnreachable(t *testing.T) {
	var said bytes.Buffer
	_, err := Watch(t.Context(), WatchOptions{Target: &rest.Config{Host: "http://127.0.0.1:1"}, Progress: &said})
	require.Error(t, err, "error")
	require.Contains(t, err.Error(), "creating a namespace for the load, within 10s, failed: ", "error")
	require.Contains(t, err.Error(), "connection refused; is an API server running there", "error")
	require.NotContains(t, err.Error(), "\n", "error")
	assert.LessOrEqual(t, said.Len(), 0, "it also says %q", &said)
	pages.Troubleshooting(t, "..", err.Error())
}
