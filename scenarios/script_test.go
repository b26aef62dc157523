package scenarios

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestCommands runs the scripts that test the commands themselves.
func TestCommands(t *testing.T) { Test(t, "testdata") }

// TestMistakes runs scripts with mistakes: each must fail, even after "!", with a
// message that says where and what.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"unknown command":       {"strat", `x.txtar:1: unknown command "strat"; did you mean start?`},
		"testscript's stop":     {"# Hello.\nstop\n", "x.txtar:2: stop ends the script here; write shutdown"},
		"no server":             {"expect / 200", "x.txtar:1: expect: no API server is running"},
		"wrong arguments":       {"expect /healthz", "x.txtar:1: expect: wrong arguments (usage: expect [-H HEADER]... PATH CODE [REGEXP])"},
		"negated mistake":       {"! expect /healthz", "x.txtar:1: expect: wrong arguments"},
		"unknown flag":          {"start --holds x", "x.txtar:1: start: unknown flag: --holds (usage: start "},
		"flags without --":      {"start feature", `x.txtar:1: start: wrong arguments: "feature"; flags of kube-apiserver come after --`},
		"no status code":        {"expect / ok", `"ok" is not an HTTP status code`},
		"no regular expression": {"expect / 200 '('", "missing closing )"},
		"no duration":           {"advance soon", `"soon" is not a duration like 10m`},
		"time back":             {"advance -- -1s", `"-1s" is not a duration`},
		"no delay":              {"delay hook/x by=soon", `x.txtar:1: delay: wrong arguments: "delay hook/x by=soon": column 14: `},
		"no point":              {"hold", "x.txtar:1: hold: wrong arguments (usage: hold POINT"},
		"no such point":         {"start\nfail store/putt with=unavailable", `did you mean store/put?`},
		"no such server":        {"start\nhold store/put server=apiserver-1", "apiserver-0"},
		"no such watch":         {"start\nevent nobody ADDED", `there is no watch "nobody"; begin one with: watch nobody RESOURCE`},
		"no such event":         {"start\nwatch all pods\nevent all CREATED", `no event is of type "CREATED"`},
		"a watch twice":         {"start\nwatch all pods\nwatch all pods", `there is a watch "all" already; end it with: unwatch all`},
		"no such path":          {"start\nvia client-9", "there is no client-9; did you mean client-1?; the next new one is client-1"},
		"eventually what":       {"eventually gett pods a", `unknown command "gett"; did you mean get?`},
		"always for how long":   {"always ready", "say for how long, as in --for 5s"},
		"repeat how often":      {"repeat ready", "say how often, as in --times 100"},
		"no such fake":          {"fake admision a.example.com", `no kind of fake is called "admision"; did you mean admission?`},
		"a fake twice":          {"fake audit a.example.com\nfake audit a.example.com", "there is a fake at a.example.com already"},
		"no fake there":         {"fake audit a.example.com\ncalls b.example.com", `there is no fake at "b.example.com"; did you mean a.example.com?`},
		"two answers":           {"fake audit a.example.com a.yaml\n-- a.yaml --\n- {status: 503, break: true}\n", "x.txtar:1: fake: wrong arguments: a.yaml: answer 1: it can have one of status, break and answer"},
		"no answer":             {"fake audit a.example.com a.yaml\n-- a.yaml --\n- {state: 503}\n", `unknown field "state"`},
		"not its answer":        {"fake token-review a.example.com a.yaml\n-- a.yaml --\n- {answer: {allowed: true}}\n", `answer 1: error unmarshaling JSON: while decoding JSON: json: unknown field "allowed"`},
		"two things at once":    {"start\ncontroller a pods a.yaml\n-- a.yaml --\n- {patch: {}, delete: true}\n", "a.yaml: rule 1: it needs exactly one of patch, status, apply, finalize and delete"},
		"no such media type":    {"start\naccept protobuff", `no media type is called "protobuff"; did you mean protobuf?`},
		"kubectl auth can-i":    {"start\nkubectl auth can-i get pods", "would end the process"},
		"no such controller":    {"start\nkube-controller-manager deploymnet", `kube-controller-manager has no controller "deploymnet"; did you mean deployment?`},
		"controllers twice":     {"start\nkube-controller-manager job\nkube-controller-manager job", "x.txtar:3: kube-controller-manager: there is a kube-controller-manager already; end it with: kube-controller-manager --stop"},
		"no scheduler":          {"start\nkube-scheduler --stop", "x.txtar:2: kube-scheduler: there is no kube-scheduler; start one with: kube-scheduler"},
		"stop and crash":        {"start\nkube-scheduler --stop --crash", "it can have one of --stop and --crash"},
		"stop one controller":   {"start\nkube-controller-manager --stop job", `"job"; what ends, ends as a whole`},
		"no nodes":              {"start\nnodes --stop", "x.txtar:2: nodes: there are no nodes; start some with: nodes"},
		"nodes twice":           {"start\nnodes\nnodes", "x.txtar:3: nodes: there are nodes already; end them with: nodes --stop"},
		"no node":               {"start\nnodes --count 0", "there can't be 0 nodes"},
		"no such fate":          {"start\nnodes a.yaml\n-- a.yaml --\n- {readyIn: 10s}\n", `x.txtar:2: nodes: wrong arguments: a.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "readyIn"`},
		"time back on a node":   {"start\nnodes a.yaml\n-- a.yaml --\n- {runs: -1m}\n", `a.yaml: row 1: -1m0s is not a time that passes`},
		"no such Pod":           {"start\nnodes a.yaml\n-- a.yaml --\n- {when: {metadata: {name: snow}}, never: true}\n", `after the last command: x.txtar:2: row 1 matched no Pod; remove it, or fix its "when"`},
		"an editor":             {"start\nkubectl edit pod a", "kubectl edit starts an editor"},
		"an editor expected":    {"start\n! kubectl edit pod a", "kubectl edit starts an editor"},
		"no tokens":             {"fake audit a.example.com\nissue a.example.com jane", "a.example.com issues no tokens; a fake of the kind oidc does"},
		"no such key":           {"fake oidc a.example.com\nissue --key forgd a.example.com jane", `no key is called "forgd"; did you mean forged?`},
		"no keys":               {"fake audit a.example.com\nrotate a.example.com", "a.example.com has no keys; fakes of the kinds oidc and kms do"},
		"cut twice":             {"fake audit a.example.com\ncut a.example.com\ncut a.example.com", "x.txtar:3: cut: wrong arguments: a.example.com is cut off already"},
		"not cut":               {"fake audit a.example.com\nheal a.example.com", "x.txtar:2: heal: wrong arguments: a.example.com is not cut off"},
		"no such call":          {"fake kms a.example.com a.yaml\n-- a.yaml --\n- {when: {call: sign}, status: 503}\n", `answer 1: no call is "sign"; there are status, encrypt and decrypt`},
		"not its call":          {"fake kms a.example.com a.yaml\n-- a.yaml --\n- {answer: {healthz: bad}}\n", "needs when: {call: status}"},
		"no time between":       {"fake kubelet a.example.com a.yaml\n-- a.yaml --\n- {answer: {logs: [a], every: 0s}}\n", "every is a time above 0"},
		"no bytes":              {"fake konnectivity a.example.com a.yaml\n-- a.yaml --\n- {answer: {breakAfter: 0}}\n", "breakAfter is a number of bytes above 0"},
		"nothing to open":       {"fake audit a.example.com\nopen a.example.com", "no answer of a.example.com holds anything"},
		"no header":             {"start\nrequest -H Accept GET /version", `"Accept" is not a header like 'Accept: application/json'`},
		"a name twice":          {"start\nwatch all pods\nrequest --background all GET /version", `there is a watch "all" already`},
		"no validity":           {"start\nas certificate soon jane", `"soon" is not a duration like 1h`},
		"no such server to end": {"start\nshutdown --begin apiserver-1", `no server is called "apiserver-1"`},
		"which server":          {"start --servers 2\ncrash", "which server? There are apiserver-0, apiserver-1"},
		"wrong server":          {"start --servers 2\ncrash apiserver-2", `no server is called "apiserver-2"`},
		"no such store":         {"start --store memroy", `did you mean memory?`},
		"real store":            {"start --store embedded", `needs sockets, and so real time; run the script with --real-time`},
		"nothing to lift":       {"hold hook/x\nlift hold store/put", `x.txtar:2: lift: wrong arguments: no rule begins with "hold store/put"; the rules of the script are: "hold hook/x"`},
		"never fired":           {"fail store/put resource=pods with=unavailable\nstart\nshutdown", `x.txtar:3: shutdown: x.txtar:1: the rule "fail store/put resource=pods with=unavailable" never fired`},
		"lifted, never fired":   {"start\nfail store/put resource=pods with=unavailable\nlift fail", `x.txtar:3: lift: x.txtar:2: the rule "fail store/put resource=pods with=unavailable" never fired`},
		"never fired until end": {"start\nfail store/put resource=pods with=unavailable\n", `after the last command: x.txtar:2: the rule`},
		"no rule fires":         {"start\nawait fired fail store/put with=unavailable", `there is no rule "fail store/put with=unavailable"; the rules of the script are: none`},
		"empty note":            {"note", "note: wrong arguments"},
		"negated advance":       {"! advance 1s", "advance: it cannot be expected to fail; leave out the !"},
		"unknown condition":     {"[sunny] start", "this package has [virtual]"},
		"unexpected success":    {"start\n! ready\n", "x.txtar:2: ready: succeeded, and was expected to fail"},
		"unknown resource":      {"start\n! list confmaps\n", `x.txtar:2: list: wrong arguments: the server serves no resource "confmaps"; did you mean configmaps? (usage: `},
		"unknown hook":          {"start\nawait hook crd-informers-synced end\n", "did you mean crd-informer-synced?"},
		"unknown phase":         {"start\nawait hook crd-informer-synced done\n", `a hook can't be awaited to "done"`},
		"unknown check":         {"start\nawait check pong ok\n", `/readyz has no check "pong"; did you mean ping?`},
		"not held":              {"hold hook/crd-informer-synced\nstart\nrelease hook/crd-informer-sync\n", "did you mean hook/crd-informer-synced?"},
		"held for ever":         {"hold hook/crd-informer-synced\nstart\nready\n", "hooks that are held: crd-informer-synced"},
		"check red for ever":    {"hold hook/crd-informer-synced\nstart\nawait check poststarthook/crd-informer-synced ok\n", "is still failing: not within 1m0s; hooks that are held: crd-informer-synced"},
		"no crash":              {"start\nawait crash\n", "the API server has not crashed: not within 1m0s"},
		"relative path":         {"start\nrequest GET healthz\n", `the path "healthz" does not begin with /`},
		"missing file":          {"start\napply no-such.yaml\n", "no such file or directory"},
		"cache not frozen":      {"start\nrelease cache/pods\n", "nothing is held at cache/pods; held are: none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := scriptOf(c.script).Run(t.Context(), Options{})
			if result.Status != Failed || !strings.Contains(result.Err.Error(), c.want) {
				t.Errorf("%s: %v\nwant %q", result.Status, result.Err, c.want)
			}
		})
	}
}

// scriptOf makes a script of text.
func scriptOf(text string) Script { return newScript("x.txtar", []byte(text)) }

func TestRealTimeDoesNotAdvanceFar(t *testing.T) {
	result := scriptOf("advance 1s\nadvance 1h\n").Run(t.Context(), Options{RealTime: true})
	want := "x.txtar:2: advance: wrong arguments: it would take 1h0m0s of real time"
	if result.Err == nil || !strings.Contains(result.Err.Error(), want) {
		t.Errorf("%v, want %q", result.Err, want)
	}
}

func TestInterrupted(t *testing.T) {
	for name, opts := range map[string]Options{"virtual": {}, "real": {RealTime: true}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			result := scriptOf("note one\n").Run(ctx, opts)
			if result.Status != Failed || !strings.Contains(result.Err.Error(), "interrupted") {
				t.Errorf("%s: %v", result.Status, result.Err)
			}
		})
	}
	// In real time a command that is waiting ends too.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	result := scriptOf("advance 5s\n").Run(ctx, Options{RealTime: true})
	if result.Status != Failed || !strings.Contains(result.Err.Error(), "interrupted") || time.Since(began) > 4*time.Second {
		t.Errorf("%s after %s: %v", result.Status, time.Since(began), result.Err)
	}
}

// TestNothingIsLeft runs a script that fails halfway and looks for leftovers.
func TestNothingIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("GOTMPDIR", temp)
	for _, opts := range []Options{{}, {RealTime: true}} {
		result := scriptOf("start\nfreeze cache/pods optional\nexpect /healthz 404\n").Run(t.Context(), opts)
		if result.Status != Failed || !strings.Contains(result.Err.Error(), "x.txtar:3: ") {
			t.Errorf("%s: %v", result.Status, result.Err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(temp, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSkip(t *testing.T) {
	result := scriptOf("note one\nskip 'no snow today'\nnote two\n").Run(t.Context(), Options{})
	if result.Status != Skipped || result.Reason != "no snow today" || result.Err != nil {
		t.Errorf("%s, %q: %v", result.Status, result.Reason, result.Err)
	}
	if text := transcript(result); strings.Contains(text, "two") {
		t.Errorf("the story goes on after the skip:\n%s", text)
	}
}

func TestFind(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	b, a := write("b.txtar", "# One.\n# Two.\n\n# Three.\n"), write("a.txtar", "start\n-- x --\n# No.\n")
	other := write("notes.txt", "")

	scripts, err := Find(folder, b, "stale-read")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, script := range scripts {
		files = append(files, script.File)
	}
	want := []string{a, b, b, "scenarios/library/watchcache/stale-read.txtar"}
	if strings.Join(files, " ") != strings.Join(want, " ") {
		t.Errorf("found %q, want %q", files, want)
	}
	if scripts[0].Title() != "" || scripts[1].Title() != "One. Two." {
		t.Errorf("titles %q, %q", scripts[0].Title(), scripts[1].Title())
	}
	for name, want := range map[string]string{
		other:                            "ends in .txtar",
		t.TempDir():                      "holds no script",
		"stale-raed":                     "did you mean stale-read?",
		filepath.Join(b, "no", "folder"): "not a directory",
	} {
		if _, err := Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%q): %v, want %q", name, err, want)
		}
	}
}
