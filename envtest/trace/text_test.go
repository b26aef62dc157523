package trace

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// story is a boot with a held hook, a request that it affects, and the end.
func story() []Record {
	var recs []Record
	at := func(ms int, e Event) {
		d := time.Duration(ms) * time.Millisecond
		recs = append(recs, Record{
			Seq: int64(len(recs) + 1), Elapsed: d, ControlPlane: "alpha", Event: e,
			Time: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d),
		})
	}
	hook := func(name string, p Phase) Hook { return Hook{Kind: PostStart, Name: name, Phase: p} }
	at(0, Note{"hold the CRD informer and ask for a custom resource"})
	at(0, Stage{Name: "generic", Phase: Start})
	at(12, Stage{Name: "generic", Phase: End})
	at(12, Stage{Name: "apiextensions", Phase: Start})
	at(15, Stage{Name: "apiextensions", Phase: End})
	at(15, Stage{Name: "aggregator", Phase: End, Err: errors.New("injected at stage/aggregator")})
	at(16, hook("start-apiextensions-informers", Start))
	at(16, hook("crd-informer-synced", Held))
	at(18, hook("start-apiextensions-informers", End))
	at(18, Request{Method: "GET", URI: "/api/v1/namespaces/kube-system", Verb: "get", User: loopbackUser, UserAgent: "loopback", Phase: End,
		Code: 404, Server: "kube-apiserver", Duration: time.Millisecond})
	at(20, Check{Endpoint: "readyz", Name: "poststarthook/crd-informer-synced", Reason: "not finished"})
	at(25, Request{Method: "GET", URI: "/apis/example.com/v1/widgets?limit=500", Verb: "list", User: "admin", UserAgent: "test", Phase: End,
		Code: 503, Server: "apiextensions", Duration: 1234 * time.Microsecond})
	at(30, hook("crd-informer-synced", Released))
	at(30, hook("crd-informer-synced", Start))
	at(130, hook("crd-informer-synced", End))
	at(131, Check{Endpoint: "readyz", Name: "poststarthook/crd-informer-synced", OK: true})
	at(1005, Signal{"HasBeenReady"})
	at(1010, Request{Method: "GET", URI: "/apis/example.com/v1/widgets?watch=1", Verb: "watch", User: "admin", UserAgent: "test", Phase: Start,
		Server: "apiextensions"})
	at(1020, Request{Method: "GET", URI: "/nothing", Verb: "get", User: "admin", UserAgent: "test", Phase: End, Code: 404, Server: "not-found"})
	put := Fault{Phase: Applied, Action: "fail", Rule: "fail store/put resource=configmaps nth=2 with=unavailable", Point: "store/put",
		Server: "alpha-0", Resource: "configmaps", Namespace: "default", Name: "a", Key: "/registry/configmaps/default/a", Caller: "admin", Occurrence: 2}
	at(1030, put)
	list := Fault{Phase: Held, Action: "hold", Rule: "hold informer/pods verb=list", Point: "informer/pods", Server: "alpha-0", Verb: "list", Occurrence: 1}
	at(1040, list)
	list.Phase, list.Err = Released, errors.New("context\ncanceled")
	at(1045, list)
	at(1045, Fault{Phase: Applied, Action: "lose-reply", Rule: "lose-reply http/update phase=after", Point: "http/update", OperationPhase: "after", Occurrence: 1})
	dial := Fault{Phase: Held, Action: "delay", Rule: "delay egress/etcd by=3s", Point: "egress/etcd", Key: "127.0.0.1:2379", Occurrence: 7}
	at(1050, dial)
	dial.Phase = Released
	at(4050, dial)
	at(61_000, Hook{Kind: PreShutdown, Name: "stop-kubernetes-service-controller", Phase: End, Err: errors.New("no\nlease \x1b[31m")})
	at(3_600_500, Request{Method: "GET", URI: "/apis/example.com/v1/widgets?watch=1", Verb: "watch", User: "admin", UserAgent: "test", Phase: End,
		Code: 200, Server: "apiextensions", Duration: 3599 * time.Second, Err: errors.New("unexpected EOF")})
	return recs
}

// twoPlanes is a story of two control planes.
func twoPlanes() []Record {
	recs := story()[:3]
	other := Record{Seq: 1, Elapsed: 5 * time.Millisecond, ControlPlane: "beta", Event: Signal{"HasBeenReady"}}
	return append(recs, other)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(got, want), "%s differs (go test -update rewrites it); got:\n%s\nwant:\n%s", path, got, want)
}

func TestWriteText(t *testing.T) {
	for _, test := range []struct {
		file string
		recs []Record
		opts TextOptions
	}{
		{"timeline.txt", story(), TextOptions{}},
		{"timeline-verbose.txt", story(), TextOptions{Verbose: true}},
		{"timeline-color.txt", story(), TextOptions{Color: true}},
		{"timeline-two.txt", twoPlanes(), TextOptions{}},
		{"timeline-empty.txt", nil, TextOptions{}},
	} {
		t.Run(test.file, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, WriteText(&out, test.recs, test.opts))
			golden(t, test.file, out.Bytes())
		})
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                              "+0.000s",
		1999 * time.Microsecond:        "+0.001s",
		59999 * time.Millisecond:       "+59.999s",
		time.Minute:                    "+1m0.000s",
		25*time.Hour + time.Second:     "+25h0m1.000s",
		time.Hour + 90*time.Second + 5: "+1h1m30.000s",
	} {
		assert.Equal(t, want, elapsed(d), "elapsed(%v)", d)
	}
}

func TestWriteErrorsSurface(t *testing.T) {
	full := errors.New("disk full")
	assert.ErrorIs(t, WriteText(failingWriter{full}, story(), TextOptions{}), full, "WriteText")
	assert.ErrorIs(t, WriteJSON(failingWriter{full}, story()), full, "WriteJSON")
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestJSONRoundTrip(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WriteJSON(&out, story()))
	golden(t, "timeline.jsonl", out.Bytes())
	back, err := ReadJSON(&out)
	require.NoError(t, err)
	assert.Equal(t, story(), back, "came back")
}

// TestJSONTimeZone shows that the time zone of the machine is not in the file.
func TestJSONTimeZone(t *testing.T) {
	written := func(zone *time.Location) string {
		var out bytes.Buffer
		require.NoError(t, WriteJSON(&out, []Record{{Time: time.Unix(0, 0).In(zone), Event: Note{Text: "snow"}}}))
		return out.String()
	}
	here, there := written(time.UTC), written(time.FixedZone("Chatham", 45900))
	assert.Equal(t, there, here)
}

// What a full trace adds keeps all it knows.
func TestJSONRoundTripFull(t *testing.T) {
	object := Object{Kind: "ConfigMap", Namespace: "default", Name: "snow", UID: "u1", Revision: 7, Labels: "app=snow", Finalizers: "example.com/a", Deleting: true, Digest: "d1"}
	recs := []Record{
		{Seq: 2, Event: Answer{Client: "a", Method: "PUT", URI: "/api/v1/namespaces/default/configmaps/snow", Code: 409, Reason: "Conflict", Asked: 1,
			Took: time.Second, Sent: object, DryRun: true, About: Object{Kind: "configmaps", Name: "snow"}}},
		{Seq: 3, Event: Answer{Client: "a", Method: "GET", URI: "/api/v1/configmaps?limit=1", Code: 200, Revision: 9, Objects: []Object{object}, Continue: "token"}},
		{Seq: 4, Event: WatchEvent{Client: "a", URI: "/api/v1/configmaps?watch=true", Watch: 1, Type: "BOOKMARK", Object: object, Asked: 3, InitialEventsEnd: true}},
		{Seq: 5, Event: Write{Key: "/registry/configmaps/default/snow", Revision: 7, Created: true}},
	}
	var out bytes.Buffer
	require.NoError(t, WriteJSON(&out, recs))
	back, err := ReadJSON(&out)
	require.NoError(t, err)
	assert.Equal(t, recs, back, "came back")
}

func TestReadJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"\n{\"type\":\"hook\"":                            "line 2",
		`{"type":"weather"}`:                              `unknown type "weather"`,
		`{"type":"fault","phase":"start"}`:                `cannot have the phase "start"`,
		`{"type":"stage","phase":"held"}`:                 `cannot have the phase "held"`,
		`{"type":"hook","phase":"held","kind":"mid-way"}`: `cannot be of kind "mid-way"`,
		`{"type":"note","texd":"x"}`:                      `unknown field "texd"`,
		strings.Repeat("x", maxJSONLineBytes+1):           "too long",
	} {
		_, err := ReadJSON(strings.NewReader(text))
		assert.ErrorContains(t, err, want, "%.60q", text)
	}
}

func FuzzReadJSON(f *testing.F) {
	var out bytes.Buffer
	require.NoError(f, WriteJSON(&out, story()))
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		recs, err := ReadJSON(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := WriteJSON(&again, recs); err != nil {
			t.Skip(err) // JSON times have no such year
		}
		back, err := ReadJSON(&again)
		assert.False(t, err != nil || !reflect.DeepEqual(back, recs), "%+v came back as %+v, %v", recs, back, err)
		assert.NoError(t, WriteText(&again, recs, TextOptions{}))
	})
}
