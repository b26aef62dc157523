package report

import (
	"bytes"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/envtest/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite the golden files")

// story has every type of event, and of each link one at least.
func story() []trace.Record {
	var recs []trace.Record
	add := func(us int, e trace.Event) {
		recs = append(recs, trace.Record{Seq: int64(len(recs) + 1), Elapsed: time.Duration(us) * time.Microsecond, ControlPlane: "story/server-1", Event: e})
	}
	hook := trace.Hook{Kind: trace.PostStart, Name: "crd-informer-synced", Phase: trace.Held}
	freeze := trace.Fault{Phase: trace.Held, Action: "freeze", Rule: "freeze cache/configmaps", Point: "cache/configmaps", Server: "apiserver-0", Verb: "event", Namespace: "default", Name: "snow", Occurrence: 1}
	watch := trace.Request{Method: "GET", URI: "/api/v1/configmaps?watch=true", Verb: "watch", User: "admin", Phase: trace.Start, Server: "kube-apiserver"}
	patch := "/api/v1/namespaces/default/configmaps/snow?force=true"
	snow := trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "snow", Revision: 7, Digest: "d1"}
	turn := func(number, cause int, point, phase string) trace.Turn {
		return trace.Turn{Number: number, Cause: cause, Point: point, Phase: phase, Server: "apiserver-0", Resource: "configmaps", Namespace: "default", Name: "snow", Caller: "admin", Occurrence: 1}
	}
	add(0, trace.Note{Text: "# It snows."})
	add(0, trace.Note{Text: "> start"})
	add(0, trace.Note{Text: "a remark"})
	add(1, trace.Stage{Name: "generic", Phase: trace.Start})
	add(2, trace.Stage{Name: "generic", Phase: trace.End})
	add(3, hook)
	add(4, trace.Check{Endpoint: "readyz", Name: "ping", OK: true})
	add(4, trace.Check{Endpoint: "readyz", Name: "poststarthook/crd-informer-synced", Reason: "not finished"})
	hook.Phase = trace.Released
	add(1005, hook)
	hook.Phase = trace.Start
	add(1005, hook)
	hook.Phase, hook.Err = trace.End, errors.New("out of snow")
	add(1010, hook)
	add(1011, trace.Check{Endpoint: "readyz", Name: "poststarthook/crd-informer-synced", OK: true})
	add(1012, trace.Signal{Name: "HasBeenReady"})
	add(1020, trace.Note{Text: "> apply snow.yaml"})
	add(1021, watch)
	add(1022, turn(1, 0, "http/patch", "before"))
	add(1023, turn(2, 1, "store/put", "before"))
	add(1023, trace.Write{Key: "/registry/configmaps/default/snow", Revision: 7, Created: true})
	add(1023, trace.Write{Key: "/registry/apiregistration.k8s.io/apiservices/v1.apps", Revision: 8})
	add(1024, turn(3, 2, "http/patch", "after"))
	add(1024, trace.Request{Method: "PATCH", URI: patch, Verb: "patch", User: "admin", Phase: trace.End, Code: 201, Server: "kube-apiserver", Duration: 3 * time.Microsecond})
	add(1024, trace.Answer{Client: "admin", Method: "PATCH", URI: patch, Code: 201, Objects: []trace.Object{snow}})
	add(1025, turn(4, 2, "cache/configmaps", "before"))
	add(1025, freeze)
	freeze.Phase = trace.Released
	add(2000, freeze)
	add(2001, trace.WatchEvent{Client: "admin", URI: watch.URI, Watch: 1, Type: "ADDED", Object: snow})
	add(2002, trace.Fault{Phase: trace.Applied, Action: "fail", Rule: "fail store/put with=unavailable", Point: "store/put", Server: "apiserver-0", Key: "/registry/x", Occurrence: 1})
	add(2003, trace.Request{Method: "GET", URI: "/api/v1/nodes", Verb: "list", User: "system:apiserver", Phase: trace.End, Code: 503, Server: "kube-apiserver"})
	watch.Phase, watch.Code, watch.Duration = trace.End, 200, 983*time.Microsecond
	add(2004, watch)
	return recs
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "%s (go test -update rewrites it)", path)
}

func TestData(t *testing.T) {
	data, err := Page{Runs: []Run{{Name: "story", Records: story(), Failed: &Failure{Line: 3, Text: "too warm"}}}}.data()
	require.NoError(t, err)
	lines := bytes.ReplaceAll(data, []byte("],["), []byte("],\n["))
	lines = bytes.ReplaceAll(lines, []byte(`],"`), []byte("],\n\""))
	golden(t, "data.json", append(lines, '\n'))
}

// The set of events is closed: each type in package trace has a sample in the story,
// and so a lane, a kind and a label.
func TestEveryEventHasALane(t *testing.T) {
	sampled := map[string]bool{}
	recs := story()
	sorted := newSorter(recs)
	for _, rec := range recs {
		look, err := describe(rec.Event)
		require.NoError(t, err)
		assert.Contains(t, kinds, look.kind)
		assert.NotEmpty(t, look.label, "%#v", rec.Event)
		assert.NotEmpty(t, sorted.lane(rec).name, "%#v", rec.Event)
		sampled[reflect.TypeOf(rec.Event).Name()] = true
	}
	for _, name := range eventTypes(t) {
		assert.True(t, sampled[name], "trace.%s is new: give it a look, a lane and a place in the story", name)
	}
	assert.Len(t, sampled, len(eventTypes(t)))
}

// eventTypes returns the names of all types of package trace that are events, which
// are those with the method that only events have.
func eventTypes(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../*.go")
	require.NoError(t, err)
	var names []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "line" {
				names = append(names, f.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	require.NotEmpty(t, names)
	return names
}

type unknown struct{ trace.Event }

func TestUnknownEventIsAnError(t *testing.T) {
	err := WriteHTML(&bytes.Buffer{}, Page{Runs: []Run{{Name: "odd", Records: []trace.Record{{Seq: 9, Event: unknown{}}}}}})
	require.ErrorContains(t, err, `report: run "odd": record 9: an event of type report.unknown has no lane`)
	require.ErrorContains(t, WritePerfetto(&bytes.Buffer{}, []trace.Record{{Seq: 9, Event: unknown{}}}), "record 9: an event of type report.unknown has no lane")
}

func TestPageRefuses(t *testing.T) {
	run := Run{Name: "a", Records: story()}
	for want, page := range map[string]Page{
		"the page has no run":                       {},
		"the page has 3 runs":                       {Runs: []Run{run, run, run}},
		`run "a": it failed at record 99, which is`: {Runs: []Run{{Name: "a", Records: story(), Failed: &Failure{Seq: 99}}}},
	} {
		require.ErrorContains(t, WriteHTML(&bytes.Buffer{}, page), want)
	}
}

func TestNoRecords(t *testing.T) {
	data, err := Page{Runs: []Run{{Name: "empty", Failed: &Failure{}}}}.data()
	require.NoError(t, err)
	assert.Contains(t, string(data), `"events":[]`)
	assert.Contains(t, string(data), `"failed":{"event":-1}`)
}

// The last command is what failed unless a record is named.
func TestFailure(t *testing.T) {
	for _, c := range []struct {
		failure Failure
		recs    []trace.Record
		want    int
	}{
		{Failure{}, story(), 13},
		{Failure{Seq: 5}, story(), 4},
		{Failure{}, story()[3:7], 3},
	} {
		d, err := Run{Records: c.recs, Failed: &c.failure}.data()
		require.NoError(t, err)
		assert.Equal(t, c.want, d.Failed.Event)
	}
}

// Lanes depend neither on the order of records nor on the time.
func TestLanesAreStableAndSorted(t *testing.T) {
	recs := slices.Concat(story(), synthetic(800))
	want, err := newTimeline(recs)
	require.NoError(t, err)
	slices.Reverse(recs)
	got, err := newTimeline(recs)
	require.NoError(t, err)
	assert.Equal(t, want.groups, got.groups)
	assert.Equal(t, want.lanes, got.lanes)
	names := map[int][]string{}
	for _, l := range want.lanes {
		names[l.group] = append(names[l.group], l.name)
	}
	for i, g := range want.groups {
		assert.True(t, g.script || slices.IsSortedFunc(names[i], natural), "%s: %q", g.name, names[i])
	}
	assert.Equal(t, "Script", want.groups[0].name)
	assert.Equal(t, []string{"phases", "commands", "notes"}, names[0])
}

func TestNatural(t *testing.T) {
	sorted := []string{"", "a", "a #2", "a #10", "a b", "b1", "b1c", "b12"}
	shuffled := slices.Clone(sorted)
	slices.Reverse(shuffled)
	slices.SortFunc(shuffled, natural)
	assert.Equal(t, sorted, shuffled)
}

func TestGroups(t *testing.T) {
	of := func(recs []trace.Record) map[string]bool {
		tl, err := newTimeline(recs)
		require.NoError(t, err)
		folded := map[string]bool{}
		for _, g := range tl.groups {
			folded[g.name] = g.folded
		}
		return folded
	}
	assert.Equal(t, map[string]bool{
		"Script": false, "Faults and gates": false, "Informers and caches": false, "Clients": false, "Store": false,
		"Stages and signals": false, "Hooks": false, "Checks": false,
		"Routine: requests": true, "Routine: store": true, "Routine: turns": true,
	}, of(story()), "the servers' own routine is folded, and no name is needed to tell one server")

	other := trace.Record{ControlPlane: "story/server-2", Event: trace.Signal{Name: "HasBeenReady"}}
	assert.Contains(t, of(append(story(), other)), "server-2 · Stages and signals", "without the script's name")
	assert.Contains(t, of(append(story(), other)), "server-1 · Clients")
	other = trace.Record{ControlPlane: "other/server-2", Event: trace.Signal{Name: "HasBeenReady"}}
	assert.Contains(t, of(append(story(), other)), "other/server-2 · Stages and signals", "they are of different scripts")
	assert.Contains(t, of(synthetic(500)), "apiserver-1 · Hooks")
}

func TestWhoIsAClient(t *testing.T) {
	recs := []trace.Record{{Event: trace.Answer{Client: "system:anonymous"}}}
	for user, want := range map[string]section{
		"admin":                               clients,
		"system:apiserver":                    ownRequests,
		"system:anonymous":                    clients, // here the test is
		"system:serviceaccount:default:robot": clients,
		"system:serviceaccount:kube-system:cleaner": ownRequests,
		"": clients,
	} {
		key := newSorter(recs).lane(trace.Record{Event: trace.Request{User: user, Verb: "get"}})
		assert.Equal(t, want, key.section, user)
	}
}

func TestKeysAndPaths(t *testing.T) {
	for key, want := range map[string][2]string{
		"/registry/configmaps/default/snow":                    {"configmaps", "default/snow"},
		"/registry/apiregistration.k8s.io/apiservices/v1.apps": {"apiregistration.k8s.io/apiservices", "v1.apps"},
		"/registry/namespaces/default":                         {"namespaces", "default"},
		"/registry/services/specs/default/kubernetes":          {"services", "specs/default/kubernetes"},
		"compact_rev_key":                                      {"compact_rev_key", ""},
		"":                                                     {"", ""},
	} {
		resource, object := cutKey(key)
		assert.Equal(t, want, [2]string{resource, object}, key)
	}
	for uri, want := range map[string]string{
		"/api/v1/namespaces/default/configmaps/snow?fieldManager=x&force=true": "configmaps/snow",
		"/api/v1/namespaces/default":                   "namespaces/default",
		"/apis/apps/v1/deployments?limit=5&timeout=7s": "deployments?limit=5",
		"/apis?timeout=32s":                            "/apis",
		"/":                                            "/",
		"%zz":                                          "%zz",
	} {
		assert.Equal(t, want, shortURI(uri), uri)
	}
}

// An event of a full trace takes about as much room as its text.
func TestSizePerEvent(t *testing.T) {
	recs := synthetic(10_000)
	data, err := Page{Runs: []Run{{Name: "synthetic", Records: recs}}}.data()
	require.NoError(t, err)
	assert.Less(t, len(data)/len(recs), 140, "bytes per event")
	var page bytes.Buffer
	require.NoError(t, WriteHTML(&page, Page{Runs: []Run{{Name: "synthetic", Records: recs}}}))
	assert.Less(t, page.Len()-len(data), 80_000, "the page itself")
	program, err := program()
	require.NoError(t, err)
	assert.NotContains(t, strings.ToLower(program), "</script", "it would end the program")
}

func BenchmarkWriteHTML(b *testing.B) {
	recs := synthetic(10_000)
	for b.Loop() {
		var out bytes.Buffer
		require.NoError(b, WriteHTML(&out, Page{Runs: []Run{{Name: "synthetic", Records: recs}}}))
		b.ReportMetric(float64(out.Len())/float64(len(recs)), "B/event")
	}
}
