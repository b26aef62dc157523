package report

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/trace"
)

// tale is a run under construction: a tenth of a second from record to record.
type tale struct{ recs []trace.Record }

func (t *tale) add(server string, events ...trace.Event) {
	for _, e := range events {
		n := len(t.recs)
		t.recs = append(t.recs, trace.Record{
			Seq: int64(n + 1), Elapsed: time.Duration(n) * 100 * time.Millisecond, ControlPlane: "server-1", Server: server, Event: e,
		})
	}
}

func (t *tale) note(text string) { t.add("", trace.Note{Text: text}) }

// boot has one of everything that every boot has.
func (t *tale) boot(server string) {
	hook := trace.Hook{Kind: trace.PostStart, Name: "routine-hook", Phase: trace.Start}
	t.add(server, trace.Stage{Name: "options", Phase: trace.Start}, trace.Stage{Name: "options", Phase: trace.End},
		trace.Stage{Name: "run", Phase: trace.Start}, hook)
	t.add("", trace.Write{Key: "/registry/namespaces/default", Revision: int64(len(t.recs) + 1), Created: true})
	hook.Phase = trace.End
	t.add(server, trace.Check{Endpoint: "readyz", Name: "poststarthook/routine-hook", Reason: "not finished"}, hook,
		trace.Request{Method: "GET", URI: "/api", Verb: "get", User: "system:apiserver", Phase: trace.End, Code: 200},
		trace.Turn{Number: len(t.recs) + 1, Point: "store/put", Phase: "before", Server: "apiserver-0"},
		trace.Signal{Name: "HasBeenReady"}, trace.Check{Endpoint: "readyz", Name: "poststarthook/routine-hook", OK: true})
}

// end is what a server does when it stops.
func (t *tale) end(server string) {
	t.add(server, trace.Signal{Name: "ShutdownInitiated"}, trace.Hook{Kind: trace.PreShutdown, Name: "bye", Phase: trace.Start},
		trace.Hook{Kind: trace.PreShutdown, Name: "bye", Phase: trace.End}, trace.Stage{Name: "run", Phase: trace.End})
}

// answered is a client's write, with its answer.
func (t *tale) answered(revision int64) {
	t.add("", trace.Write{Key: "/registry/configmaps/default/a", Revision: revision})
	t.add("", trace.Answer{Client: "admin", Method: "PATCH", URI: "/api/v1/namespaces/default/configmaps/a", Code: 200,
		Objects: []trace.Object{{Kind: "ConfigMap", Namespace: "default", Name: "a", Revision: revision}}})
}

// folded are the indices of what each fold has.
func (t *tale) folded(tb testing.TB) map[string][]int {
	tb.Helper()
	tl, err := newTimeline(t.recs)
	require.NoError(tb, err)
	all := map[string][]int{}
	for _, f := range tl.folds {
		for _, span := range f.spans {
			for i := span[0]; i < span[1]; i++ {
				all[f.name] = append(all[f.name], i)
			}
		}
	}
	return all
}

func upTo(from, to int) []int {
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// The boot is folded, and so is the end after the script's last line; what is between them
// is the script's own time.
func TestBootAndEndAreFolded(t *testing.T) {
	var s tale
	s.note("# It snows.")
	s.note("> start")
	s.boot("")
	booted := len(s.recs)
	s.note("> apply a.yaml")
	s.answered(700)
	s.add("", trace.Check{Endpoint: "readyz", Name: "poststarthook/routine-hook", Reason: "later"})
	ends := len(s.recs)
	s.end("")
	want := map[string][]int{"boot": upTo(2, booted), "end": upTo(ends, len(s.recs))}
	assert.Equal(t, want, s.folded(t))

	s.recs[booted].Event = trace.Note{Text: "> shutdown"}
	assert.Equal(t, map[string][]int{"boot": upTo(2, booted)}, s.folded(t), "the script asked for the end")
}

// A server that boots again is folded again, whatever others do meanwhile.
func TestEveryBootIsFolded(t *testing.T) {
	var s tale
	s.note("> start --servers 2")
	s.boot("apiserver-0")
	first := len(s.recs)
	s.boot("apiserver-1")
	second := len(s.recs)
	s.note("> restart apiserver-1")
	s.answered(100)
	s.add("apiserver-0", trace.Check{Endpoint: "readyz", Name: "etcd", Reason: "gone"})
	again := len(s.recs)
	s.boot("apiserver-1")
	whole := len(s.recs)
	s.note("> check")
	assert.Equal(t, map[string][]int{
		"boot of apiserver-0": upTo(1, first), "boot of apiserver-1": append(upTo(first, second), upTo(again, whole)...),
	}, s.folded(t))
}

// What a boot has on top of what every boot has is not folded: it is what the story is about.
func TestWhatABootTells(t *testing.T) {
	held := trace.Hook{Kind: trace.PostStart, Name: "held", Phase: trace.Held}
	running, failing := held, trace.Hook{Kind: trace.PostStart, Name: "fails", Phase: trace.Start}
	running.Phase = trace.Start
	broken := failing
	broken.Phase, broken.Err = trace.End, errors.New("out of snow")
	for name, events := range map[string][]trace.Event{
		"a remark":         {trace.Note{Text: "the store is compacted"}},
		"a rule":           {trace.Fault{Phase: trace.Applied, Action: "fail", Point: "store/put", Server: "apiserver-0"}},
		"a held hook":      {held, running, trace.Check{Endpoint: "readyz", Name: "poststarthook/held", Reason: "not finished"}},
		"a failing hook":   {failing, broken},
		"a failing stage":  {trace.Stage{Name: "generic", Phase: trace.Start}, trace.Stage{Name: "generic", Phase: trace.End, Err: errors.New("no")}},
		"a delayed hook":   {failing, trace.Fault{Phase: trace.Held, Action: "delay", Point: "hook/fails", Server: "apiserver-0"}},
		"a client's watch": {trace.WatchEvent{Client: "admin", URI: "/api/v1/configmaps", Watch: 1, Type: "ADDED"}},
		"a client":         {trace.Request{Method: "GET", URI: "/api", Verb: "get", User: "jane", Phase: trace.End, Code: 503}},
	} {
		var s tale
		s.note("> start")
		s.add("", trace.Stage{Name: "options", Phase: trace.Start})
		s.add("", events...)
		after := len(s.recs)
		s.add("", trace.Signal{Name: "MuxAndDiscoveryComplete"})
		s.answered(700)
		s.note("> check")
		assert.Equal(t, map[string][]int{"boot": {1, after}}, s.folded(t), name)
	}
}

// Without a script, a boot ends when the server is ready.
func TestBootWithoutAScript(t *testing.T) {
	var s tale
	s.boot("")
	ready := len(s.recs) - 1 // a check has changed after the signal
	s.end("")
	assert.Equal(t, map[string][]int{"boot": upTo(0, ready)}, s.folded(t))
}

// A fold is open if what failed is the command that it came of.
func TestFoldOfAFailureIsOpen(t *testing.T) {
	var s tale
	s.note("> start")
	s.boot("")
	open := func(failed *Failure) []foldData {
		d, err := Run{Records: s.recs, Failed: failed}.data()
		require.NoError(t, err)
		return d.Folds
	}
	boot := foldData{Name: "boot", Spans: []int{1, len(s.recs) - 1}}
	assert.Equal(t, []foldData{boot}, open(nil))
	boot.Open = true
	assert.Equal(t, []foldData{boot}, open(&Failure{}))
	s.note("> get configmaps a")
	boot.Open = false
	assert.Equal(t, []foldData{boot}, open(&Failure{}), "another command failed")
}

// The spans of a fold in the data block are relative: events of others are between them.
func TestSpans(t *testing.T) {
	f := fold{name: "boot", spans: [][2]int{{3, 5}, {6, 7}, {20, 30}}}
	assert.Equal(t, foldData{Name: "boot", Spans: []int{3, 2, 1, 1, 13, 10}}, f.data(nil))
}

// Names without what readers know differ as the whole names do.
func TestShortNames(t *testing.T) {
	const accounts = "system:serviceaccount:kube-system:"
	names := []string{
		accounts + "deployment-controller answers", accounts + "replicaset-controller answers",
		"system:serviceaccount:default:robot requests",
		"system:kube-scheduler watch /api/v1/pods", "system:kube-scheduler watch /api/v1/pods #1",
		"system:kube-scheduler watch /apis/apps/v1/namespaces/default/deployments #2",
		"jane watch /api/v1/events", "jane watch /apis/events.k8s.io/v1/events",
		"(no user) requests", "rbac/bootstrap-roles",
	}
	assert.Equal(t, []string{
		"deployment-controller answers", "replicaset-controller answers", "default:robot requests",
		"kube-scheduler watch pods", "kube-scheduler watch pods #1", "kube-scheduler watch deployments #2",
		"", "", // these would read alike
		"", "",
	}, shortNames(names))
}

// A crash carries its name, and cuts off what the server was doing, not what others do.
func TestCrashes(t *testing.T) {
	for _, server := range []string{"", "apiserver-1"} {
		run, other := trace.Stage{Name: "run", Phase: trace.Start}, "apiserver-0"
		if server == "" {
			other = "" // a single server
		}
		var s tale
		s.add(server, run)
		s.add("", trace.Answer{Client: "admin", Method: "GET", URI: "/api", Code: 200})
		s.recs[1].Server = "apiserver-1"
		s.note("kube-scheduler crashed: on purpose")
		s.add(server, trace.Note{Text: "apiserver-1 crashed: on purpose"})
		crash := len(s.recs) - 1
		s.add(server, run)
		s.add(other, trace.Signal{Name: "last"})
		run.Phase = trace.End
		s.add(server, run)
		tl, err := newTimeline(s.recs)
		require.NoError(t, err)
		assert.Equal(t, []bar{{main: 0, from: 0, to: crash, open: true}, {main: 6, from: 4, to: 6}}, tl.bars[:2], "of %q", server)
		for _, i := range []int{crash - 1, crash} {
			assert.Equal(t, trace.Bad, tl.events[i].tone, tl.events[i].label)
		}
	}
	look := describeFault(trace.Fault{Phase: trace.Held, Action: "partition", Point: "client", Name: "kube-controller-manager", Caller: "system:serviceaccount:kube-system:job-controller"})
	assert.Equal(t, "partition kube-controller-manager as job-controller", look.label)
	look = describeFault(trace.Fault{Phase: trace.Held, Action: "partition", Point: "client", Name: "kube-scheduler", Caller: "system:kube-scheduler"})
	assert.Equal(t, "partition kube-scheduler", look.label)
}

// Nodes say that they live every ten seconds. In a story of an hour that is routine.
func TestHeartbeatsAreRoutine(t *testing.T) {
	const lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-0"
	object := trace.Object{Kind: "Lease", Namespace: "kube-node-lease", Name: "node-0", Revision: 3}
	recs := []trace.Record{
		{Event: trace.Write{Key: "/registry/leases/kube-node-lease/node-0", Revision: 3}},
		{Event: trace.Request{Method: "PUT", URI: lease, Verb: "update", User: "admin", Phase: trace.End, Code: 200}},
		{Event: trace.Answer{Client: "admin", Method: "PUT", URI: lease, Code: 200, Objects: []trace.Object{object}}},
	}
	sorted := newSorter(recs)
	for _, rec := range recs {
		assert.True(t, sorted.lane(rec).section.routine(), "%s", rec.Event)
	}
	other := trace.Record{Event: trace.Write{Key: "/registry/leases/kube-system/leader", Revision: 4}}
	recs = append(recs, other, trace.Record{Event: trace.Answer{Client: "admin", Method: "PUT", Code: 200, Objects: []trace.Object{{Revision: 4}}}})
	assert.Equal(t, store, newSorter(recs).lane(other).section, "a lease that clients elect a leader by is none")
}
