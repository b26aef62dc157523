package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/bench"
	"snowglobe.test/internal/home"
	"snowglobe.test/internal/pages"
	"snowglobe.test/scenarios/explore/worker"
)

// TestMain makes the test binary act as the program when a script runs it, and as the
// programs that "assets" makes of it. By the name of its own file it is the program as well
// where that starts itself again.
func TestMain(m *testing.M) {
	if worker.Requested() || bench.ChildRequested() || len(os.Args) > 1 && os.Args[1] == runSeedsName {
		main()
	}
	commands := map[string]func(){"snowglobe": main}
	for _, name := range standInNames() {
		commands[name] = main
	}
	_ = flag.Set("test.parallel", "3") // some wait for what does not answer
	testscript.Main(home.Tests{M: m}, commands)
}

func TestCommandLine(t *testing.T) {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", strings.TrimSpace(string(cache))) // for builds in sim mode
			home := filepath.Join(env.WorkDir, ".home")
			env.Setenv("HOME", home) // it would be /no-home, where root can write
			env.Setenv("XDG_CACHE_HOME", filepath.Join(home, ".cache"))
			return os.Mkdir(home, 0o700)
		},
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "up": awaitUp, "appears": appears, "kube": kube, "mode": mode, "taken": taken,
		},
	})
}

// exits CODE PROGRAM ARG... runs a program that must exit with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// waitTimeout bounds waiting for a control plane on a busy machine.
const waitTimeout = time.Minute

// awaitUp KUBECONFIG waits until the control plane of a kubeconfig answers.
func awaitUp(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: up KUBECONFIG")
	}
	kubeconfig := ts.MkAbs(args[0])
	awaitFile(ts, kubeconfig, func() bool { // its file is written last
		code, _, err := request(kubeconfig, http.MethodGet, "/readyz", "")
		return err == nil && code == http.StatusOK
	})
}

// appears FILE waits until a file exists.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears FILE")
	}
	file := ts.MkAbs(args[0])
	awaitFile(ts, file, func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

// awaitFile waits until what depends on a file is so, and looks whenever something
// changes in the file's folder.
func awaitFile(ts *testscript.TestScript, file string, isSo func() bool) {
	watcher, err := fsnotify.NewWatcher()
	ts.Check(err)
	defer watcher.Close()
	ts.Check(watcher.Add(filepath.Dir(file)))
	timeout := time.After(waitTimeout)
	for !isSo() {
		select {
		case <-watcher.Events:
		case err := <-watcher.Errors:
			ts.Check(err)
		case <-timeout:
			ts.Fatalf("waited for %s in vain for %s", file, waitTimeout)
		}
	}
}

// kube KUBECONFIG METHOD PATH [BODY] sends a request and prints the answer.
func kube(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: kube KUBECONFIG METHOD PATH [BODY]")
	}
	code, body, err := request(ts.MkAbs(args[0]), args[1], args[2], strings.Join(args[3:], " "))
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", code, body)
}

// request sends a request. If the server asks the client to retry, as it does while a
// new cache fills, client-go does.
func request(kubeconfig, method, path, body string) (code int, answer string, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0, "", err
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, "", err
	}
	defer transport.CloseIdleConnections()
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, transport)
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	content, err := client.Verb(method).RequestURI(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).StatusCode(&code).Raw()
	if code != 0 {
		err = nil // whatever the answer is
	}
	return code, string(content), err
}

// mode FILE PERM compares the permissions of a file.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode FILE PERM")
	}
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if perm := fmt.Sprintf("%o", info.Mode().Perm()); perm != args[1] {
		ts.Fatalf("mode %s, want %s", perm, args[1])
	}
}

// taken sets $PORT to a port that is in use until the script ends.
func taken(ts *testscript.TestScript, _ bool, _ []string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = listener.Close() })
	ts.Setenv("PORT", strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
}

// TestHelp checks that every command has a short description and examples.
func TestHelp(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		assert.NotEmpty(t, cmd.Short, "the short description of %s", cmd.CommandPath())
		assert.NotEmpty(t, cmd.Example, "the example of %s", cmd.CommandPath())
		for line := range strings.Lines(cmd.Example) {
			assert.True(t, strings.HasPrefix(line, "  snowglobe "), "%s: example %q is not a command line", cmd.CommandPath(), line)
			for _, line := range commandLines(strings.TrimSpace(line) + "\n") {
				assert.NoError(t, parses(line), "%s: example snowglobe %s", cmd.CommandPath(), line)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
}

// TestEndForSure is a command that goes on after it was interrupted, and one that
// ends in time.
func TestEndForSure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, lasts := range []time.Duration{endDelay / 2, 2 * endDelay} {
			ctx, interrupt := context.WithCancel(t.Context())
			var stderr bytes.Buffer
			code := 0
			done := endForSure(ctx, &stderr, endDelay, func(c int) { code = c })
			interrupt()
			time.Sleep(lasts)
			done()
			synctest.Wait()
			if ends := lasts < endDelay; ends && (code != 0 || stderr.Len() > 0) {
				t.Errorf("it ended by itself: exit code %d, %s", code, &stderr)
			} else if !ends && (code != exitInterrupted || !strings.Contains(stderr.String(), "ended at once: it did not end within 8s")) {
				t.Errorf("exit code %d, %s", code, &stderr)
			} else if !ends {
				pages.Troubleshooting(t, "../..", stderr.String())
			}
		}
	})
}
