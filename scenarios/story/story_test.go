package story

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/trace"
)

var update = flag.Bool("update", false, "write the golden files")

// sampleStory has one of everything: a server with two held hooks, which crashes,
// and one with many.
func sampleStory() []trace.Record {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	var records []trace.Record
	plane := planeName(1)
	add := func(after time.Duration, event trace.Event) {
		if len(records) > 0 {
			after += records[len(records)-1].Elapsed
		}
		records = append(records, trace.Record{
			Seq: int64(len(records) + 1), Time: start.Add(after), Elapsed: after, ControlPlane: plane, Event: event,
		})
	}
	note := func(text string) { add(0, trace.Note{Text: text}) }
	hook := func(after time.Duration, name string, phase trace.Phase, err error) {
		add(after, trace.Hook{Kind: trace.PostStart, Name: name, Phase: phase, Err: err})
	}
	check := func(after time.Duration, name string, ok bool) {
		add(after, trace.Check{Endpoint: "readyz", Name: name, OK: ok})
	}
	request := func(agent, user, uri string, code int) {
		add(0, trace.Request{Method: "GET", URI: uri, Verb: "get", User: user, UserAgent: agent, Phase: trace.End, Code: code, Server: "kube-apiserver"})
	}

	note("# A server with two held hooks. Its story is one of a single long paragraph, which does not fit on one line of the page.")
	note("> start --hold one --hold two")
	add(0, trace.Stage{Name: "generic", Phase: trace.Start})
	hook(0, "one", trace.Held, nil)
	hook(0, "two", trace.Held, nil)
	hook(0, "three", trace.Start, nil)
	check(0, "ping", true)
	check(0, "poststarthook/one", false)
	check(0, "poststarthook/three", false)
	request("kube-apiserver", "system:apiserver", "/api/v1/namespaces", 200)
	request("script-lookup", trace.AdminUser, "/apis", 200)
	request(ScriptAgent, trace.AdminUser, "/api/v1/pods"+applyQuery, 201)
	note("> kubectl get pods")
	request(KubectlAgent, trace.AdminUser, "/apis/apps/v1?timeout=32s", 200)
	request(KubectlAgent, trace.AdminUser, "/api/v1/namespaces/default/pods?limit=500", 200)
	note("> kube-scheduler --crash")
	add(0, trace.Fault{Phase: trace.Held, Action: "partition", Rule: "partition client name=client-1 optional", Point: "client", Name: "client-1"})
	note("> release hook one")
	hook(0, "one", trace.Released, nil)
	hook(0, "one", trace.Start, nil)
	hook(time.Second, "one", trace.End, nil)
	check(0, "poststarthook/one", true)
	add(0, trace.Signal{Name: "HasBeenReady"})
	check(time.Minute, "ping", false)
	note("a note")
	hook(0, "three", trace.End, errors.New("out of snow"))
	hook(0, "two", trace.Released, nil)
	add(0, trace.Signal{Name: "AfterShutdownDelayDuration"})
	add(0, trace.Signal{Name: "ShutdownInitiated"})

	plane = planeName(2)
	note("# One with many.")
	note("> start --hold-all")
	for _, name := range []string{"one", "two", "three", "four", "five"} {
		hook(0, name, trace.Held, nil)
		check(0, "poststarthook/"+name, false)
	}
	note("> release hooks")
	hook(0, "four", trace.Released, nil)
	hook(0, "four", trace.End, nil)
	check(time.Millisecond, "poststarthook/four", true)
	request(ScriptAgent, "mallory", "/version", 403)
	add(0, trace.Stage{Name: "run", Phase: trace.End, Err: errors.New("no more")})
	return records
}

func TestWrite(t *testing.T) {
	for name, opts := range map[string]TextOptions{
		"story":         {},
		"story-color":   {Color: true},
		"story-verbose": {Verbose: true},
		"story-narrow":  {Color: true, Columns: 50},
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			require.NoError(t, Write(&text, sampleStory(), opts))
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, text.Bytes(), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(text.Bytes(), want), "the story is now\n%s\nand not what %s has; if that is right, run: go test ./scenarios/story -run TestWrite -update", &text, golden)
		})
	}
	var text bytes.Buffer
	err := Write(&text, nil, TextOptions{})
	assert.True(t, err == nil && text.Len() == 0, "a story of nothing: %q, %v", &text, err)
}

func TestStoryIsBounded(t *testing.T) {
	s := New()
	for range limit + 1 {
		s.Observe(trace.Record{Time: s.began, ControlPlane: "cp-7", Event: trace.Signal{Name: "x"}})
	}
	records := s.Records()
	first, last := records[0], records[len(records)-1]
	assert.True(t, len(records) == limit/2+1 && last.Seq == limit+1 && last.Seq-first.Seq == int64(len(records)-1), "%d records from %d to %d", len(records), first.Seq, last.Seq)
	assert.Equal(t, planeName(1), last.ControlPlane, "what the control plane is called")
}
