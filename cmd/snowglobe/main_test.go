package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestMain makes the test binary act as the program when a script runs it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"snowglobe": main})
}

func TestCommandLine(t *testing.T) {
	testscript.Run(t, testscript.Params{
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
	deadline := time.Now().Add(waitTimeout)
	for {
		code, _, err := request(ts.MkAbs(args[0]), http.MethodGet, "/readyz", "")
		if err == nil && code == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("not up within %s: %d, %v", waitTimeout, code, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// appears FILE waits until a file exists.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears FILE")
	}
	for begin := time.Now(); time.Since(begin) < waitTimeout; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("%s has not appeared within %s", args[0], waitTimeout)
}

// kube KUBECONFIG METHOD PATH [BODY] sends a request and prints the answer.
func kube(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: kube KUBECONFIG METHOD PATH [BODY]")
	}
	code, body, err := request(ts.MkAbs(args[0]), args[1], args[2], strings.Join(args[3:], " "))
	for begin := time.Now(); err == nil && code == http.StatusTooManyRequests && time.Since(begin) < waitTimeout; {
		time.Sleep(time.Second) // the server asks for that much while a new cache fills
		code, body, err = request(ts.MkAbs(args[0]), args[1], args[2], strings.Join(args[3:], " "))
	}
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", code, body)
}

func request(kubeconfig, method, path, body string) (code int, answer string, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0, "", err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, "", err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, config.Host+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	response, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), errors.Join(err, response.Body.Close())
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
		if cmd.Short == "" || cmd.Example == "" {
			t.Errorf("%s lacks a short description or an example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  snowglobe ") {
				t.Errorf("%s: example %q is not a command line", cmd.CommandPath(), line)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
}
