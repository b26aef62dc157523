package main

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/sample"
)

// endsWithin is how long a command may take to end after one signal, on a busy machine.
const endsWithin = 20 * time.Second

// TestSignals ends one command of three, or with -all each, by one signal, whatever it is doing.
func TestSignals(t *testing.T) {
	// What is ignored here, as SIGHUP under nohup, a child would ignore too.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(heard) })
	all := states(t)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if !sample.Has(i, 3) {
			continue
		}
		state := all[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range filesOfStates {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			c := runAs(t, cmp.Or(state.program, "snowglobe"), dir, state.env, state.args...)
			state.until(c)
			require.NoError(t, c.cmd.Process.Signal(cmp.Or(state.signal, syscall.SIGINT)))
			output := c.exits(state.want, endsWithin)
			if state.want == exitInterrupted {
				assert.Contains(t, output, "snowglobe: interrupted\n")
			}
			assert.Contains(t, output, state.says)
			assert.NotContains(t, output, "ended at once")
			assert.NotContains(t, output, "goroutine ")
		})
	}
}

// state is what a command does when it gets a signal, and how it then exits.
type state struct {
	program   string // empty for snowglobe
	args, env []string
	until     func(*child)
	signal    syscall.Signal // zero means Ctrl-C
	want      int
	says      string // among other things
}

// filesOfStates are in the folder of each command: scripts, and a module whose test runs
// until it is interrupted.
var filesOfStates = map[string]string{
	"script.txtar": "# It is healthy.\nstart\nexpect /healthz 200\n",
	"fails.txtar":  "# It is not.\nstart\nexpect /healthz 404\n",
	"slow.txtar":   "# It takes its time.\nstart\n" + strings.Repeat("advance 5s\n", 20) + "expect /healthz 200\n",
	"asks.txtar":   "# It asks.\nstart\nbreak\nexpect /healthz 200\n",
	"report.json":  `{"target": "memory", "results": [{"case": {"id": "S1/a", "system": "S1"}, "state": "passed"}]}`,
	"go.mod":       "module example.com/m\n\ngo 1.26\n",
	"untidy.txtar": "\n\n#No space.   \nstart  \n",
	"m_test.go": `package m

import (
	"os"
	"os/signal"
	"testing"
)

func TestPasses(t *testing.T) {}

func TestWaits(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt)
	dir, err := os.MkdirTemp("", "snowglobe-test-")
	if err != nil {
		t.Fatal(err)
	}
	<-heard
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}
`,
}

func states(t *testing.T) map[string]state {
	t.Helper()
	silent, dialed := silentServer(t)
	silentToo, dialedToo := silentServer(t)
	isUp := func(c *child) { c.says("Ctrl-C stops") }
	inTemporary := func(pattern string) func(*child) {
		return func(c *child) { c.makes(filepath.Join(c.temporary, pattern)) }
	}
	runsScript, runsTest, hasEtcd := inTemporary("snowglobe-script-*"), inTemporary("snowglobe-test-*"), inTemporary("snowglobe-etcd-*")
	asks := func(c *child) { c.says("ends the script.\n> ") }
	inDir := func(name string) func(*child) {
		return func(c *child) { c.makes(filepath.Join(c.cmd.Dir, name)) }
	}
	return map[string]state{
		"up boots": {args: []string{"up", "-v"}, until: func(c *child) { c.says("I1") }, want: exitInterrupted},
		"up boots on etcd": {
			args:  []string{"up", "--store", "embedded", "--data-dir", "data"},
			until: inDir("data/member"), want: exitInterrupted,
		},
		"up waits for its store": {
			args:  []string{"up", "--store", "http://" + silent},
			until: func(c *child) { c.until("dial the store", dialed) }, want: exitInterrupted,
		},
		"up runs":             {args: []string{"up", "--store", "embedded"}, until: isUp},
		"up is terminated":    {args: []string{"up"}, until: isUp, signal: syscall.SIGTERM},
		"up hangs up":         {args: []string{"up"}, until: isUp, signal: syscall.SIGHUP},
		"up runs programs":    {args: []string{"up", "--controllers", "--nodes", "1"}, until: isUp},
		"etcd runs":           {args: []string{"etcd", "--listen", "127.0.0.1:0"}, until: isUp},
		"etcd is terminated":  {args: []string{"etcd", "--listen", "127.0.0.1:0"}, until: isUp, signal: syscall.SIGTERM},
		"serve runs":          {args: []string{"serve", "--socket", "s"}, until: func(c *child) { c.says("serving control planes") }},
		"serve is terminated": {args: []string{"serve", "--socket", "s"}, until: func(c *child) { c.says("serving control planes") }, signal: syscall.SIGTERM},

		"conformance runs":          {args: []string{"conformance", "--store", "embedded"}, until: hasEtcd, want: exitInterrupted},
		"conformance is terminated": {args: []string{"conformance"}, until: func(c *child) { c.says("ok  ") }, want: exitInterrupted, signal: syscall.SIGTERM},
		"conformance tests a cluster": {
			args:  []string{"conformance", "--kubeconfig", runningCluster(t)},
			until: func(c *child) { c.says("ok  ") }, want: exitInterrupted,
		},
		"conformance waits for a cluster": waitingForCluster(t),
		"bench startup runs":              {args: []string{"bench", "startup", "--store", "embedded"}, until: hasEtcd, want: exitInterrupted},
		"bench watch runs": {
			args:  []string{"bench", "watch", "--watchers", "1", "--duration", "1h"},
			until: func(c *child) { c.says("process: 1 watchers") }, want: exitInterrupted,
		},
		"bench watch is terminated": {
			args:  []string{"bench", "watch", "--watchers", "1", "--duration", "1h"},
			until: func(c *child) { c.says("process: 1 watchers") }, want: exitInterrupted, signal: syscall.SIGTERM,
		},

		"run runs":              {args: []string{"run", "expiry"}, until: runsScript, want: exitInterrupted},
		"run is terminated":     {args: []string{"run", "expiry"}, until: runsScript, want: exitInterrupted, signal: syscall.SIGTERM},
		"run runs in real time": {args: []string{"run", "--real-time", "slow.txtar"}, until: runsScript, want: exitInterrupted},
		"run asks":              {args: []string{"run", "asks.txtar"}, until: asks, want: exitInterrupted},
		"run asks in real time": {args: []string{"run", "--real-time", "asks.txtar"}, until: asks, want: exitInterrupted},
		"run has found something": {
			args: []string{"run", "fails.txtar", "asks.txtar"}, until: asks,
			want: exitInterrupted, says: "✗ failed  fails.txtar:3: ",
		},
		"explore runs":          {args: []string{"explore", "--sim=false", "script.txtar"}, until: runsScript, want: exitInterrupted},
		"explore is terminated": {args: []string{"explore", "--sim=false", "script.txtar"}, until: runsScript, want: exitInterrupted, signal: syscall.SIGTERM},
		"explore replays":       {args: []string{"explore", "--sim=false", "--replay", "script.txtar"}, until: runsScript, want: exitInterrupted},

		"test runs":          {args: []string{"test", "-run", "Waits", "."}, until: runsTest, want: exitInterrupted},
		"test is terminated": {args: []string{"test", "-run", "Waits", "."}, until: runsTest, want: exitInterrupted, signal: syscall.SIGTERM},
		"test --seeds runs":  {args: []string{"test", "--seeds", "100", "-run", "Waits", "."}, until: runsTest, want: exitInterrupted},

		"test builds":    building(t, "test", "./..."),
		"run builds":     building(t, "run", "--seed", "1", "expiry"),
		"explore builds": building(t, "explore", "script.txtar"),

		"etcd of assets runs": {
			program: "etcd", args: []string{"--listen-client-urls=unix://s", "--advertise-client-urls=unix://s"}, until: inDir("s"),
		},
		"kube-apiserver of assets runs": {
			program: "kube-apiserver", args: append(apiServerArgs(t, "unix://"+runningEtcd(t)), "-v=2"),
			until: func(c *child) { c.says("Serving securely") }, signal: syscall.SIGTERM,
		},
		"kube-apiserver of assets waits": {
			program: "kube-apiserver", args: apiServerArgs(t, "http://"+silentToo),
			until: func(c *child) { c.until("dial the store", dialedToo) }, signal: syscall.SIGTERM,
		},
	}
}

// runningCluster is the kubeconfig of a control plane.
func runningCluster(t *testing.T) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kube")
	run(t, t.TempDir(), nil, "up", "--kubeconfig", kubeconfig).says("Ctrl-C stops")
	return kubeconfig
}

// runningEtcd is the socket of an etcd.
func runningEtcd(t *testing.T) string {
	t.Helper()
	c := run(t, t.TempDir(), nil, "etcd", "--listen", "unix://s")
	c.says("Ctrl-C stops")
	return filepath.Join(c.cmd.Dir, "s")
}

// waitingForCluster is conformance of a cluster that does not answer.
func waitingForCluster(t *testing.T) state {
	t.Helper()
	silent, dialed := silentServer(t)
	kubeconfig := filepath.Join(t.TempDir(), "kube")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(kubeconfigOf("http://"+silent)), 0o600))
	return state{args: []string{"conformance", "--kubeconfig", kubeconfig}, until: func(c *child) { c.until("dial the cluster", dialed) }, want: exitInterrupted}
}

// kubeconfigOf is a kubeconfig without credentials.
func kubeconfigOf(server string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: c}}]
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: c, user: {}}]
`, server)
}

// building is a command that builds a program, with a go that never ends.
func building(t *testing.T, args ...string) state {
	t.Helper()
	real, err := exec.LookPath("go")
	require.NoError(t, err)
	bin := t.TempDir()
	began := filepath.Join(bin, "began")
	text := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = env ] && exec %s \"$@\"\ntouch %s\nexec sleep 1000\n", real, began)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte(text), 0o700))
	return state{
		args: args, env: []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "XDG_CACHE_HOME=" + t.TempDir()},
		until: func(c *child) { c.makes(began) }, want: exitInterrupted,
	}
}

// silentServer accepts connections and never answers.
func silentServer(t *testing.T) (address string, dialed func() bool) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	accepted := make(chan struct{})
	var once sync.Once
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			once.Do(func() { close(accepted) })
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return listener.Addr().String(), func() bool {
		select {
		case <-accepted:
			return true
		default:
			return false
		}
	}
}

// TestSecondSignal ends at once, and leaves no temporary folder either.
func TestSecondSignal(t *testing.T) {
	c := run(t, t.TempDir(), nil, "up", "--store", "embedded")
	c.says("Ctrl-C stops")
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	assert.Contains(t, c.exits(exitInterrupted, endsWithin), "snowglobe: ended at once\n")
}

// TestObey tells a signal that is sent twice from a second one.
func TestObey(t *testing.T) {
	type sent struct {
		after  time.Duration
		signal os.Signal
	}
	for _, test := range []struct {
		sent []sent
		want string
	}{
		{[]sent{{0, os.Interrupt}}, "end "},
		{[]sent{{0, os.Interrupt}, {0, os.Interrupt}}, "end "},
		{[]sent{{0, os.Interrupt}, {time.Second / 2, os.Interrupt}, {time.Second, os.Interrupt}}, "end at once "},
		{[]sent{{time.Minute, os.Interrupt}, {0, syscall.SIGTERM}}, "end at once "},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked, did := make(chan os.Signal), ""
			go func() {
				defer close(asked)
				for _, s := range test.sent {
					time.Sleep(s.after)
					asked <- s.signal
				}
			}()
			obey(asked, func() { did += "end " }, func() { did += "at once " })
			assert.Equal(t, test.want, did, "%v", test.sent)
		})
	}
}

// TestKilled leaves temporary folders, and the next start removes them.
func TestKilled(t *testing.T) {
	c := run(t, t.TempDir(), nil, "up", "--store", "embedded")
	c.says("Ctrl-C stops")
	require.NoError(t, c.cmd.Process.Kill())
	<-c.ended
	left := filepath.Join(c.temporary, "snowglobe-etcd-*")
	found, err := filepath.Glob(left)
	require.NoError(t, err)
	require.Len(t, found, 1)

	next := run(t, t.TempDir(), []string{"TMPDIR=" + c.temporary}, "up", "--store", "embedded")
	next.says("Ctrl-C stops")
	assert.NoDirExists(t, found[0])
	require.NoError(t, next.cmd.Process.Signal(syscall.SIGINT))
	next.exits(exitOK, endsWithin)
	found, err = filepath.Glob(left)
	require.NoError(t, err)
	assert.Empty(t, found)
}
