package trace

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// at makes a record of one control plane.
func at(elapsed time.Duration, e Event) Record {
	return Record{Elapsed: elapsed, ControlPlane: "cp", Event: e}
}

func canonical(t *testing.T, recs ...Record) string {
	t.Helper()
	var text strings.Builder
	require.NoError(t, WriteCanonical(&text, recs))
	return text.String()
}

func snow(revision int64) Object {
	return Object{Kind: "ConfigMap", Namespace: "default", Name: "snow", Revision: revision, Digest: "d1"}
}

// run is what two clients and a watch observe. by is the number of unrelated
// writes before; first is the client whose request is recorded first, though
// neither sees the other.
func run(by int64, first string) []Record {
	const second = time.Second
	key := "/registry/configmaps/default/snow"
	commute := []Record{
		at(second, Answer{Client: "a", Method: "POST", URI: "/api/v1/namespaces/default/configmaps?timeout=7s", Code: 201, Objects: []Object{snow(by + 5)}}),
		at(second, Answer{Client: "b", Method: "GET", URI: "/api/v1/nodes", Code: 403, Reason: "Forbidden"}),
	}
	if first == "b" {
		commute[0], commute[1] = commute[1], commute[0]
	}
	recs := []Record{at(0, Write{Key: "/registry/leases/kube-system/x", Revision: 2, Created: true}), at(second, Write{Key: key, Revision: by + 5, Created: true})}
	recs = append(recs, commute...)
	return append(recs,
		at(second, WatchEvent{Client: "b", URI: "/api/v1/configmaps?watch=true", Watch: 1, Type: "ADDED", Object: snow(by + 5)}),
		at(2*second, Write{Key: key, Revision: by + 9}),
		at(2*second, Answer{Client: "b", Method: "GET", URI: "/api/v1/configmaps?limit=1&continue=" + strings.Repeat("x", int(by)), Code: 200, Revision: by + 9, Objects: []Object{snow(by + 9)}}),
		at(3*second, WatchEvent{Client: "b", URI: "/api/v1/configmaps?watch=true", Watch: 1, Err: errors.New("connection reset")}),
	)
}

func TestCanonical(t *testing.T) {
	want := strings.ReplaceAll(`+1.000s|client a|POST /api/v1/namespaces/default/configmaps -> 201 ConfigMap default/snow@1 d1
+1.000s|client b|GET /api/v1/nodes -> 403 Forbidden
+1.000s|store /registry/configmaps/default/snow|create @1
+1.000s|watch b /api/v1/configmaps?watch=true #1|ADDED ConfigMap default/snow@1 d1
+2.000s|client b|GET /api/v1/configmaps?continue=...&limit=1 -> 200 @2 ConfigMap default/snow@2 d1
+2.000s|store /registry/configmaps/default/snow|update @2
+3.000s|watch b /api/v1/configmaps?watch=true #1|end: connection reset
`, "|", "\t")
	assert.Equal(t, want, canonical(t, run(1, "a")...))
	assert.Equal(t, want, canonical(t, run(1, "b")...), "what commutes has a fixed order")
	assert.Equal(t, want, canonical(t, run(30, "a")...), "revisions are named by the test's own changes")
}

// A difference that a client can see shows: time, order in a lane, content.
func TestCanonicalDiffers(t *testing.T) {
	want := canonical(t, run(1, "a")...)
	for name, change := range map[string]func([]Record){
		"time": func(r []Record) { r[7].Elapsed += time.Millisecond },
		"content": func(r []Record) {
			r[4].Event = WatchEvent{Client: "b", URI: "/api/v1/configmaps?watch=true", Watch: 1, Type: "ADDED"}
		},
		"version": func(r []Record) {
			a := r[6].Event.(Answer)
			a.Objects = []Object{snow(6)}
			r[6].Event = a
		},
		"moment": func(r []Record) {
			a := r[6].Event.(Answer)
			a.Revision = 7
			r[6].Event = a
		},
		"lane": func(r []Record) { r[3], r[6] = r[6], r[3]; r[3].Elapsed, r[6].Elapsed = r[6].Elapsed, r[3].Elapsed },
	} {
		recs := run(1, "a")
		change(recs)
		assert.NotEqual(t, want, canonical(t, recs...), name)
	}
}

// A change that two control planes on one store record appears once.
func TestCanonicalSeveral(t *testing.T) {
	recs := run(1, "a")
	again := recs[1]
	again.ControlPlane = "other"
	text := canonical(t, append(recs, again)...)
	assert.Equal(t, 1, strings.Count(text, "create @1"))
	assert.Contains(t, text, "\tcp client a\t")
}

// Hooks of several servers have lanes of their own.
func TestCanonicalServers(t *testing.T) {
	hook := at(0, Hook{Kind: PostStart, Name: "h", Phase: Start})
	first, second := hook, hook
	first.Server, second.Server = "apiserver-0", "apiserver-1"
	assert.Equal(t, "+0.000s\thook post-start h\tstart\n", canonical(t, first))
	assert.Equal(t, "+0.000s\tapiserver-0 hook post-start h\tstart\n+0.000s\tapiserver-1 hook post-start h\tstart\n", canonical(t, at(0, Turn{}), second, first))
}

// What only one run can say, such as a UID or a place in the order, is left out.
func TestCanonicalLeavesOut(t *testing.T) {
	more := run(1, "a")
	answer := more[2].Event.(Answer)
	answer.Asked, answer.Took, answer.Sent, answer.About, answer.Continue = 7, time.Hour, Object{Name: "snow"}, Object{UID: "u1"}, "token"
	answer.Objects = []Object{{Kind: "ConfigMap", Namespace: "default", Name: "snow", UID: "u1", Revision: 6, Digest: "d1"}}
	event := more[4].Event.(WatchEvent)
	event.Asked = 3
	more[2].Event, more[4].Event = answer, event
	assert.Equal(t, canonical(t, run(1, "a")...), canonical(t, more...))
}
