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
		"unknown command":       {"strat", `x.txtar:1: unknown command "strat" (did you mean "start"?)`},
		"testscript's stop":     {"# Hello.\nstop\n", "x.txtar:2: stop ends the script here; write shutdown"},
		"no server":             {"expect / 200", "x.txtar:1: expect: no API server is running"},
		"wrong arguments":       {"expect /healthz", "x.txtar:1: expect: wrong arguments (usage: expect PATH CODE [REGEXP])"},
		"negated mistake":       {"! expect /healthz", "x.txtar:1: expect: wrong arguments"},
		"unknown flag":          {"start --holds x", "x.txtar:1: start: unknown flag: --holds (usage: start "},
		"flags without --":      {"start feature", `x.txtar:1: start: wrong arguments: "feature"; flags of kube-apiserver come after --`},
		"no status code":        {"expect / ok", `"ok" is not an HTTP status code`},
		"no regular expression": {"expect / 200 '('", "missing closing )"},
		"no duration":           {"advance soon", `"soon" is not a duration like 10m`},
		"time back":             {"advance -- -1s", `"-1s" is not a duration`},
		"no delay":              {"start --delay x=soon", "--delay x=soon is not like HOOK=10s"},
		"empty note":            {"note", "note: wrong arguments"},
		"negated advance":       {"! advance 1s", "advance: it cannot be expected to fail; leave out the !"},
		"hold a hook":           {"hold hook crd-informer-synced", "write: start --hold HOOK"},
		"unknown condition":     {"[sunny] start", "this package has [virtual]"},
		"unexpected success":    {"start\n! ready\n", "x.txtar:2: ready: succeeded, and was expected to fail"},
		"unknown resource":      {"start\n! list confmaps\n", `x.txtar:2: list: wrong arguments: the server serves no resource "confmaps"; did you mean configmaps? (usage: `},
		"unknown hook":          {"start\nawait hook crd-informers-synced end\n", "did you mean crd-informer-synced?"},
		"unknown phase":         {"start\nawait hook crd-informer-synced done\n", `a hook can't be awaited to "done"`},
		"unknown check":         {"start\nawait check pong ok\n", `/readyz has no check "pong"; did you mean ping?`},
		"not held":              {"start --hold crd-informer-synced\nrelease hook crd-informer-sync\n", "did you mean crd-informer-synced?"},
		"held for ever":         {"start --hold crd-informer-synced\nready\n", "hooks that are held: crd-informer-synced"},
		"check red for ever":    {"start --hold crd-informer-synced\nawait check poststarthook/crd-informer-synced ok\n", "is still failing: not within 1m0s; hooks that are held: crd-informer-synced"},
		"no crash":              {"start\ncrash\n", "the API server has not crashed: not within 1m0s"},
		"relative path":         {"start\nrequest GET healthz\n", `the path "healthz" does not begin with /`},
		"missing file":          {"start\napply no-such.yaml\n", "no such file or directory"},
		"cache held twice":      {"start\nhold cache pods\nhold cache pods\n", "x.txtar:3: hold: the watch cache of pods is held already"},
		"cache not held":        {"start\nrelease cache pods\n", "the watch cache of pods is not held"},
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
		result := scriptOf("start\nhold cache pods\nexpect /healthz 404\n").Run(t.Context(), opts)
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
	want := []string{a, b, b, "scenarios/library/stale-read.txtar"}
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
