package scenarios

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/scenarios/script"
)

// TestCommands runs the scripts that test the commands themselves.
func TestCommands(t *testing.T) { Test(t, "testdata") }

// TestMistakes runs scripts with mistakes: each must fail, even after "!", with a
// message that says where and what.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"renamed command": {"elect one default/lease",
			`x.txtar:1: the command "elect" is called "candidate" now`},
		"unknown command":   {"strat", `x.txtar:1: unknown command "strat"; did you mean start?`},
		"testscript's stop": {"# Hello.\nstop\n", "x.txtar:2: stop: it ends the script here; write shutdown"},
		"no server":         {"expect / 200", "x.txtar:1: expect: no API server is running"},
		"wrong arguments": {"expect /healthz", "x.txtar:1: expect: wrong arguments (usage: expect [-H " +
			"HEADER]... PATH CODE [REGEXP])"},
		"negated mistake": {"! expect /healthz", "x.txtar:1: expect: wrong arguments"},
		"unknown flag":    {"start --holds x", "x.txtar:1: start: unknown flag: --holds (usage: start "},
		"flags without --": {"start feature",
			`x.txtar:1: start: wrong arguments: "feature"; flags of kube-apiserver come after --`},
		"no status code":        {"expect / ok", `"ok" is not an HTTP status code`},
		"no regular expression": {"expect / 200 '('", "missing closing )"},
		"no duration":           {"advance soon", `"soon" is not a duration like 10m`},
		"time back":             {"advance -- -1s", `"-1s" is not a duration`},
		"no delay": {"delay hook/x by=soon",
			`x.txtar:1: delay: wrong arguments: "delay hook/x by=soon": column 14: `},
		"no point":                  {"hold", "x.txtar:1: hold: wrong arguments (usage: hold POINT"},
		"no such point":             {"start\nfail store/putt with=unavailable", `did you mean store/put?`},
		"no such event":             {"start\nwatch all pods\nnext all CREATED", `no event is of type "CREATED"`},
		"eventually what":           {"eventually gett pods a", `unknown command "gett"; did you mean get?`},
		"consistently for how long": {"consistently ready", "say for how long, as in --for 5s"},
		"repeat how often":          {"repeat ready", "say how often, as in --times 100"},
		"no such fake": {"fake admision a.example.com",
			`no kind of fake is called "admision"; did you mean admission?`},
		"a fake twice": {"fake audit a.example.com\nfake audit a.example.com",
			"there is a fake at a.example.com already"},
		"no fake there": {"fake audit a.example.com\ncalls b.example.com",
			`there is no fake at "b.example.com"; did you mean a.example.com?`},
		"two answers": {"fake audit a.example.com a.yaml\n-- a.yaml --\n- {status: 503, break: true}\n",
			"x.txtar:4: a.yaml: answer 1: it can have one of status, break and answer"},
		"no answer": {"fake audit a.example.com a.yaml\n-- a.yaml --\n- {state: 503}\n",
			`unknown field "state"`},
		"not its answer": {"fake token-review a.example.com a.yaml\n-- a.yaml --\n- {answer: {allowed: true}}\n",
			`answer 1: error unmarshaling JSON: while decoding JSON: json: unknown field "allowed"`},
		"two things at once": {"start\ncontroller a pods a.yaml\n-- a.yaml --\n- {patch: {}, delete: true}\n",
			"a.yaml: rule 1: it needs exactly one of patch, status, apply, finalize and delete"},
		"no such media type": {"start\naccept protobuff",
			`no media type is called "protobuff"; did you mean protobuf?`},
		"no such controller": {"start\nkube-controller-manager deploymnet",
			`kube-controller-manager has no controller "deploymnet"; did you mean deployment?`},
		"controllers twice": {"start\nkube-controller-manager job\nkube-controller-manager job",
			"x.txtar:3: kube-controller-manager: there is a kube-controller-manager already; end it with: " +
				"kube-controller-manager --stop"},
		"stop and crash":      {"start\nkube-scheduler --stop --crash", "it can have one of --stop and --crash"},
		"stop one controller": {"start\nkube-controller-manager --stop job", `"job"; what ends, ends as a whole`},
		"nodes twice": {"start\nnodes\nnodes", "x.txtar:3: nodes: there are nodes already; end them with: " +
			"nodes --stop"},
		"no node": {"start\nnodes --count 0", "there can't be 0 nodes"},
		"no such fate": {"start\nnodes a.yaml\n-- a.yaml --\n- {readyIn: 10s}\n",
			`x.txtar:5: a.yaml: unknown field "readyIn"`},
		"time back on a node": {"start\nnodes a.yaml\n-- a.yaml --\n- {runs: -1m}\n",
			`a.yaml: row 1: -1m0s is not a time that passes`},
		"no such Pod": {"start\nnodes a.yaml\n-- a.yaml --\n- {when: {metadata: {name: snow}}, " +
			"never: true}\n", `after the last command: x.txtar:2: row 1 matched no Pod; remove it, or fix its "when"`},
		"no tokens": {"fake audit a.example.com\nissue-token a.example.com jane",
			"a.example.com issues no tokens; a fake of the kind oidc does"},
		"no such key": {"fake oidc a.example.com\nissue-token --key forgd a.example.com jane",
			`no key is called "forgd"; did you mean forged?`},
		"no keys": {"fake audit a.example.com\nrotate-key a.example.com",
			"a.example.com has no keys; fakes of the kinds oidc and kms do"},
		"cut twice": {"fake audit a.example.com\ncut a.example.com\ncut a.example.com",
			"x.txtar:3: cut: wrong arguments: a.example.com is cut off already"},
		"not cut": {"fake audit a.example.com\nheal a.example.com",
			"x.txtar:2: heal: wrong arguments: a.example.com is not cut off"},
		"no such call": {"fake kms a.example.com a.yaml\n-- a.yaml --\n- {when: {call: sign}, status: 503}\n",
			`answer 1: no call is "sign"; there are status, encrypt and decrypt`},
		"not its call": {"fake kms a.example.com a.yaml\n-- a.yaml --\n- {answer: {healthz: bad}}\n",
			"needs when: {call: status}"},
		"no time between": {"fake kubelet a.example.com a.yaml\n-- a.yaml --\n- {answer: {logs: [a], " +
			"every: 0s}}\n", "every is a time above 0"},
		"no bytes": {"fake konnectivity a.example.com a.yaml\n-- a.yaml --\n- {answer: {breakAfter: 0}}\n",
			"breakAfter is a number of bytes above 0"},
		"nothing to open": {"fake audit a.example.com\nopen a.example.com",
			"no answer of a.example.com holds anything"},
		"no header": {"start\nrequest -H Accept GET /version",
			`"Accept" is not a header like 'Accept: application/json'`},
		"no validity":   {"start\nas certificate soon jane", `"soon" is not a duration like 1h`},
		"which server":  {"start --servers 2\ncrash", "which server? There are apiserver-0, apiserver-1"},
		"wrong server":  {"start --servers 2\ncrash apiserver-2", `no server is called "apiserver-2"`},
		"no such store": {"start --store memroy", `did you mean memory?`},
		"real store": {"start --store embedded",
			`needs sockets, and so real time; run the script with --real-time`},
		"nothing to remove": {"hold hook/x\nremove-rule hold store/put",
			`x.txtar:2: remove-rule: wrong arguments: no rule begins with "hold store/put"; the rules of the script are: "hold hook/x"`},
		"never fired": {"fail store/put resource=pods with=unavailable\nstart\nshutdown",
			`x.txtar:3: shutdown: x.txtar:1: the rule "fail store/put resource=pods with=unavailable" never fired`},
		"removed, never fired": {"start\nfail store/put resource=pods with=unavailable\nremove-rule fail",
			`x.txtar:3: remove-rule: x.txtar:2: the rule "fail store/put resource=pods with=unavailable" never fired`},
		"never fired until end": {"start\nfail store/put resource=pods with=unavailable\n",
			`after the last command: x.txtar:2: the rule`},
		"empty note":        {"note", "note: wrong arguments"},
		"negated advance":   {"! advance 1s", "advance: it cannot be expected to fail; leave out the !"},
		"unknown condition": {"[sunny] start", "this package has [virtual]"},
		"unknown phase":     {"start\nawait hook crd-informer-synced done\n", `a hook can't be awaited to "done"`},
		"not held": {"hold hook/crd-informer-synced\nstart\nrelease hook/crd-informer-sync\n",
			"did you mean hook/crd-informer-synced?"},
		"held for ever": {"hold hook/crd-informer-synced\nstart\nready\n",
			"hooks that are held: crd-informer-synced"},
		"check red for ever": {"hold hook/crd-informer-synced\nstart\nawait check " +
			"poststarthook/crd-informer-synced ok\n", "is still failing: not within 1m0s; hooks that are held: " +
			"crd-informer-synced"},
		"relative path": {"start\nrequest GET healthz\n", `the path "healthz" does not begin with /`},
		"missing file":  {"start\napply no-such.yaml\n", "x.txtar:2: there is no file no-such.yaml in the script"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := Run(t.Context(), asserting(c.script), Options{})
			assert.Equal(t, Failed, result.Status)
			assert.ErrorContains(t, result.Err, c.want)
		})
	}
}

// asserting makes a script that ends with an assertion, without which it would be refused.
func asserting(text string) script.Script {
	archive := txtar.Parse([]byte(text))
	archive.Comment = append(archive.Comment, "ready\n"...)
	return script.Parse("x.txtar", txtar.Format(archive))
}

// scriptOf makes a script of text.
func scriptOf(text string) script.Script { return script.Parse("x.txtar", []byte(text)) }

func TestRealTimeDoesNotAdvanceFar(t *testing.T) {
	result := Run(t.Context(), asserting("advance 1s\nadvance 1h\n"), Options{RealTime: true})
	want := "x.txtar:2: advance: wrong arguments: it would take 1h0m0s of real time"
	assert.ErrorContains(t, result.Err, want)
}

func TestInterrupted(t *testing.T) {
	for name, opts := range map[string]Options{"virtual": {}, "real": {RealTime: true}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			result := Run(ctx, asserting("note one\n"), opts)
			assert.Equal(t, Failed, result.Status)
			assert.ErrorContains(t, result.Err, "interrupted")
		})
	}
	// In real time a command that is waiting ends too.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	result := Run(ctx, asserting("advance 5s\n"), Options{RealTime: true})
	assert.True(t, result.Status == Failed && strings.Contains(result.Err.Error(), "interrupted") &&
		time.Since(began) <= 4*time.Second, "%s after %s: %v", result.Status, time.Since(began), result.Err)
}

// TestInterruptedStart interrupts a script while its server boots: the server does not get ready first.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	observe := envtest.WithObserver(func(rec trace.Record) {
		if _, staged := rec.Event.(trace.Stage); staged {
			interrupt()
		}
	})
	result := Run(ctx, asserting("start\n"), Options{Servers: []envtest.Option{observe}})
	assert.ErrorContains(t, result.Err, "x.txtar:1: start: interrupted")
	for _, rec := range result.Records {
		_, ran := rec.Event.(trace.Hook)
		assert.False(t, ran, "a server whose start was interrupted runs a hook: %s", rec)
	}
}

// TestInterruptedAdvance interrupts a script that lets much time pass: the rest does not pass.
func TestInterruptedAdvance(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	afterStart := func(store storage.Backend) storage.Backend {
		time.AfterFunc(time.Minute, interrupt)
		return store
	}
	result := Run(ctx, asserting("start\nadvance 10h\n"), Options{Store: afterStart})
	assert.ErrorContains(t, result.Err, "interrupted")
	assert.Less(t, result.Scripted, 10*time.Minute)
}

// TestNothingIsLeft runs a script that fails halfway and looks for leftovers.
func TestNothingIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("GOTMPDIR", temp)
	for _, opts := range []Options{{}, {RealTime: true}} {
		result := Run(t.Context(), scriptOf("start\nfreeze cache/pods optional\nexpect /healthz 404\n"), opts)
		assert.Equal(t, Failed, result.Status)
		assert.ErrorContains(t, result.Err, "x.txtar:3: ")
	}
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	assert.NoError(t, err)
	assert.Empty(t, left, "left behind")
}

func TestSkip(t *testing.T) {
	result := Run(t.Context(), asserting("note one\nskip 'no snow today'\nnote two\n"), Options{})
	assert.Equal(t, Skipped, result.Status)
	assert.Equal(t, "no snow today", result.Reason)
	assert.NoError(t, result.Err)
	assert.NotContains(t, transcript(result), "two", "the story goes on after the skip")
}

func TestFind(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	b, a := write("b.txtar", "# One.\n# Two.\n\n# Three.\n"), write("a.txtar", "start\n-- x --\n# No.\n")
	other := write("notes.txt", "")

	scripts, err := Find(folder, b, "stale-read")
	require.NoError(t, err)
	var files []string
	for _, one := range scripts {
		files = append(files, one.File)
	}
	want := []string{a, b, b, "scenarios/library/watchcache/stale-read.txtar"}
	assert.Equal(t, want, files)
	assert.Empty(t, scripts[0].Title())
	assert.Equal(t, "One. Two.", scripts[1].Title())
	for name, want := range map[string]string{
		other:                            "ends in .txtar",
		t.TempDir():                      "holds no script",
		"stale-raed":                     "did you mean stale-read?",
		filepath.Join(b, "no", "folder"): "not a directory",
	} {
		_, err := Find(name)
		assert.ErrorContains(t, err, want, "Find(%q)", name)
	}
}

// TestStoryOfRestart has a server start again, which begins no new control plane, and then
// all of them, which does.
func TestStoryOfRestart(t *testing.T) {
	text := "start\n[virtual] note one\nshutdown apiserver-0\nrestart apiserver-0\nnote two\nready\nrestart\nnote " +
		"three\nready\n"
	result := Run(t.Context(), scriptOf(text), Options{})
	require.NoError(t, result.Err)
	planes := map[string]string{}
	for _, rec := range result.Records {
		if note, ok := rec.Event.(trace.Note); ok {
			planes[note.Text] = rec.ControlPlane
		}
	}
	for text, want := range map[string]string{
		"one": "server-1", "> restart apiserver-0": "server-1", "two": "server-1", "> restart": "server-2",
		"three": "server-2",
	} {
		assert.Equal(t, want, planes[text], "which control plane %q is said of", text)
	}
}

// TestCandidateHearsOtherAnswers has a mutation change the answers that a candidate gets:
// it can't renew its lease.
func TestCandidateHearsOtherAnswers(t *testing.T) {
	of := scriptOf("start\ncandidate one demo\nnext one LEADING\nnext one LOST\n")
	mutated, err := of.Mutate(script.Mutation{Name: "no renewal",
		Answer: &script.OtherAnswer{From: http.StatusOK, To: http.StatusServiceUnavailable}})
	require.NoError(t, err)
	assert.NoError(t, Run(t.Context(), mutated, Options{}).Err)
}

// TestLookups has a script ask what the server serves once for all resources of Kubernetes itself, and for
// those of a definition each time, as they come and go.
func TestLookups(t *testing.T) {
	asked := func(commands string) (paths []string) {
		result := Run(t.Context(), asserting("start\n"+commands), Options{})
		require.NoError(t, result.Err)
		for _, record := range result.Records {
			r, ok := record.Event.(trace.Request)
			if ok && r.Phase == trace.End && strings.HasPrefix(r.UserAgent, "script") {
				path, _, _ := strings.Cut(r.URI, "?")
				paths = append(paths, path)
			}
		}
		return paths
	}
	const crd = `
-- crd.yaml --
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
	lists := []string{"/api", "/apis", "/api/v1/namespaces", "/api/v1/namespaces"}
	assert.Equal(t, lists, asked("list namespaces\nlist ns\n"))
	assert.Equal(t, append(lists, lists[:3]...), asked("list namespaces\nlist ns\nshutdown\nstart\nlist ns\n"))

	const widgets = "/apis/example.com/v1/widgets"
	lists = []string{"/api", "/apis", widgets, "/api/v1/namespaces", "/api", "/apis", widgets}
	paths := asked("apply crd.yaml\nlist widgets\nlist ns\nlist widgets\n" + crd)
	assert.Equal(t, lists, paths[len(paths)-len(lists):])
}
