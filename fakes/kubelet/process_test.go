package kubelet_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"snowglobe.test/fakes/kubelet"
	"snowglobe.test/fakes/stub"
)

// protocol is one of exec and attach, with the client's way to speak them.
type protocol struct {
	name      string
	exitCodes bool
	resizes   bool
	open      func(w *world, path string, query ...string) remotecommand.Executor
}

var protocols = []protocol{
	{"SPDY v2", false, false, overSPDY("v2.channel.k8s.io")},
	{"SPDY v3", false, true, overSPDY("v3.channel.k8s.io")},
	{"SPDY v4", true, true, overSPDY("v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io")},
	{"WebSocket v4", true, true, overWebSocket("v4.channel.k8s.io")},
	{"WebSocket v5", true, true, overWebSocket("v5.channel.k8s.io", "v4.channel.k8s.io")},
}

func overSPDY(versions ...string) func(*world, string, ...string) remotecommand.Executor {
	return func(w *world, path string, query ...string) remotecommand.Executor {
		return w.spdy(w.url(path, query...), versions...)
	}
}

func overWebSocket(versions ...string) func(*world, string, ...string) remotecommand.Executor {
	return func(w *world, path string, query ...string) remotecommand.Executor {
		return w.webSocket(w.url(path, query...), versions...)
	}
}

// inProtocols runs a test for each protocol in each world.
func inProtocols(t *testing.T, test func(t *testing.T, w *world, open func(query ...string) remotecommand.Executor, p protocol)) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			inWorlds(t, func(t *testing.T, w *world) {
				test(t, w, func(query ...string) remotecommand.Executor { return p.open(w, "/exec/default/web/app", query...) }, p)
			})
		})
	}
}

func TestExec(t *testing.T) {
	inProtocols(t, func(t *testing.T, w *world, open func(...string) remotecommand.Executor, p protocol) {
		w.app.Exec = func(_ context.Context, p *kubelet.Process) (int, error) {
			line, err := bufio.NewReader(p.Stdin).ReadString('\n')
			fmt.Fprintf(p.Stdout, "%s said %s", strings.Join(p.Request.Command, " "), line)
			fmt.Fprint(p.Stderr, strings.Repeat("careful ", 10_000))
			if err != nil {
				return 0, err
			}
			return len(p.Request.Command), nil
		}
		for _, command := range [][]string{{"cat", "-v", "x"}, nil} {
			query := []string{"input", "1", "output", "1", "error", "1"}
			for _, word := range command {
				query = append(query, "command", word)
			}
			var stdout, stderr bytes.Buffer
			err := open(query...).StreamWithContext(t.Context(), remotecommand.StreamOptions{
				Stdin: strings.NewReader("hello\n"), Stdout: &stdout, Stderr: &stderr,
			})
			assert.Equal(t, strings.Join(command, " ")+" said hello\n", stdout.String())
			assert.Equal(t, 80_000, stderr.Len())
			var exit exec.CodeExitError
			switch {
			case command == nil:
				assert.NoError(t, err)
			case p.exitCodes && assert.ErrorAs(t, err, &exit):
				assert.Equal(t, 3, exit.Code)
			default:
				assert.ErrorContains(t, err, "exit status 3")
			}
		}
		sessions, err := w.AwaitSessions(t.Context(), 2)
		require.NoError(t, err)
		assert.Equal(t, []int{3, 0}, []int{sessions[0].ExitCode, sessions[1].ExitCode})
		assert.Equal(t, []string{"cat", "-v", "x"}, sessions[0].Request.Command)
		assert.NoError(t, sessions[0].Err)
		assert.Contains(t, sessions[0].Protocol, "channel.k8s.io")
	})
}

// TestExecOfOld is about version 1 of the protocol, the errors of which client-go
// doesn't wait for.
func TestExecOfOld(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.app.Exec = func(_ context.Context, p *kubelet.Process) (int, error) {
			_, err := fmt.Fprint(p.Stdout, "hello")
			return 0, err
		}
		var stdout bytes.Buffer
		assert.NoError(t, w.spdy(w.url("/exec/default/web/app", "output", "1"), "channel.k8s.io").StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &stdout}))
		assert.Equal(t, "hello", stdout.String())
	})
}

func TestExecFails(t *testing.T) {
	inProtocols(t, func(t *testing.T, w *world, open func(...string) remotecommand.Executor, _ protocol) {
		w.app.Exec = func(context.Context, *kubelet.Process) (int, error) { return 0, errors.New("no such program") }
		err := open("output", "1").StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		assert.ErrorContains(t, err, "error executing command in container: no such program")
	})
}

// sizes is a terminal whose window is changed twice.
type sizes struct{ left []remotecommand.TerminalSize }

func (s *sizes) Next() *remotecommand.TerminalSize {
	if len(s.left) == 0 {
		return nil
	}
	next := s.left[0]
	s.left = s.left[1:]
	return &next
}

func TestTerminal(t *testing.T) {
	for _, p := range protocols {
		if !p.resizes {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			inWorlds(t, func(t *testing.T, w *world) {
				w.app.Attach = func(_ context.Context, p *kubelet.Process) (int, error) {
					fmt.Fprintln(p.Stderr, "a terminal does not show this")
					for range 2 {
						size := <-p.Resize
						fmt.Fprint(p.Stdout, p.TTY, size.Width, "x", size.Height, "\n")
					}
					return 0, nil
				}
				var stdout bytes.Buffer
				err := p.open(w, "/attach/default/web/app", "output", "1", "error", "1", "tty", "1").StreamWithContext(t.Context(), remotecommand.StreamOptions{
					Stdout: &stdout, Tty: true, TerminalSizeQueue: &sizes{[]remotecommand.TerminalSize{{Width: 80, Height: 24}, {Width: 132, Height: 50}}},
				})
				assert.NoError(t, err)
				assert.Equal(t, "true 80x24\ntrue 132x50\n", stdout.String())
			})
		})
	}
}

// TestHeld holds a request, whose client leaves; another is let go.
func TestHeld(t *testing.T) {
	inProtocols(t, func(t *testing.T, w *world, open func(...string) remotecommand.Executor, _ protocol) {
		w.app.Exec = func(context.Context, *kubelet.Process) (int, error) { return 0, nil }
		gate := w.Requests.Hold(func(r kubelet.Request) bool { return r.Verb == "exec" })
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			failed <- open("output", "1").StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard})
		}()
		require.NoError(t, gate.Await(t.Context(), 1))
		cancel()
		w.leave() // over SPDY, client-go waits for an answer whatever becomes of its context
		assert.Error(t, <-failed)
		calls, err := w.Requests.Await(t.Context(), 1)
		require.NoError(t, err)
		assert.ErrorContains(t, calls[0].Err, "held at a gate")
		assert.Empty(t, w.Sessions(), "it was never run")

		gate.Open()
		assert.NoError(t, open("output", "1").StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard}))
	})
}

// TestClientLeaves ends the context of a process whose client is gone.
func TestClientLeaves(t *testing.T) {
	inProtocols(t, func(t *testing.T, w *world, open func(...string) remotecommand.Executor, _ protocol) {
		w.app.Exec = func(ctx context.Context, p *kubelet.Process) (int, error) {
			fmt.Fprint(p.Stdout, "started")
			<-ctx.Done()
			for range p.Resize {
				t.Error("the terminal is gone")
			}
			return 0, context.Cause(ctx)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := open("input", "1", "output", "1").StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: &silence{ctx}, Stdout: whenWritten(cancel)})
		assert.ErrorIs(t, err, context.Canceled)
		sessions, err := w.AwaitSessions(t.Context(), 1)
		require.NoError(t, err)
		assert.ErrorContains(t, sessions[0].Err, "the client has closed the connection")
	})
}

// whenWritten is called when something has been written.
type whenWritten func()

func (f whenWritten) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// silence says nothing until the context ends.
type silence struct{ ctx context.Context }

func (s *silence) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, io.EOF
}

// TestBroken breaks the connection off in the middle of a process: because the process
// wants it, with all others, and because the kubelet stops.
func TestBroken(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *world) error{
		"by the process": func(*testing.T, *world) error { return stub.ErrBreak },
		"with all":       func(_ *testing.T, w *world) error { w.BreakAll(); return nil },
		"by Stop": func(t *testing.T, w *world) error {
			w.others.Go(func() { assert.NoError(t, w.Stop(context.Background())) })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inProtocols(t, func(t *testing.T, w *world, open func(...string) remotecommand.Executor, _ protocol) {
				w.app.Exec = func(ctx context.Context, p *kubelet.Process) (int, error) {
					fmt.Fprint(p.Stdout, "so far")
					if err := end(t, w); err != nil {
						return 0, err
					}
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}
				// SPDY's versions end without an error when the connection breaks,
				// because client-go takes the end of a stream for the end of the process.
				_ = open("output", "1").StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
				sessions, err := w.AwaitSessions(t.Context(), 1)
				require.NoError(t, err)
				assert.Error(t, sessions[0].Err)
				w.others.Wait()
			})
		})
	}
}

// TestRefused asks without an upgrade, and for what isn't there.
func TestRefused(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		for path, want := range map[string]string{
			"/exec/default/gone/app?output=1":    "404 pod does not exist",
			"/exec/default/web/456/app?output=1": "404 pod not found",
			"/exec/default/web/gone?output=1":    `500 container not found ("gone")`,
			"/exec/default/web/app":              "400 you must specify at least 1 of stdin, stdout, stderr",
			"/exec/default/web/app?output=1":     `500 exec of container "app" of pod default/web: nothing plays the process: set Container.Exec, or Answer.Process in a rule`,
			"/attach/default/web/app?output=1":   `500 attach of container "app" of pod default/web: nothing plays the process: set Container.Attach, or Answer.Process in a rule`,
			"/exec/default/web":                  "404 404: Not Found",
			"/run/default/web/app":               "405 405: Method Not Allowed",
			"/portForward/default/web":           "400 unable to upgrade: header X-Stream-Protocol-Version does not exist in request with 3 headers",
			"/containerLogs/default/gone/app":    `404 pod "gone" does not exist`,
			"/containerLogs/default/web/gone":    `404 container "gone" not found in pod "web"`,
			"/portForward/default/gone":          "404 pod does not exist",
			"/somewhere/else":                    "404 404: Page Not Found",
		} {
			response, err := w.transport.RoundTrip(&http.Request{Method: "GET", URL: w.parse(path), Header: http.Header{}})
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			assert.NoError(t, err)
			assert.NoError(t, response.Body.Close())
			assert.Equal(t, want, fmt.Sprint(response.StatusCode, " ", strings.TrimSpace(string(body))), path)
		}
	})
}

func TestRun(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.app.Exec = func(_ context.Context, p *kubelet.Process) (int, error) {
			fmt.Fprint(p.Stdout, p.Request.Command[0], ": ")
			fmt.Fprint(p.Stderr, "done")
			return len(p.Request.Command) - 1, nil
		}
		for command, want := range map[string]string{"ls": "200 ls: done", "ls -l": "500 command 'ls -l' exited with 1: ls: done\n"} {
			response, err := w.transport.RoundTrip(&http.Request{Method: "POST", URL: w.url("/run/default/web/app", "cmd", command), Header: http.Header{}})
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			assert.NoError(t, err)
			assert.NoError(t, response.Body.Close())
			assert.Equal(t, want, fmt.Sprint(response.StatusCode, " ", string(body)))
		}
	})
}

// TestNoReturn is about functions that end their goroutine, as t.FailNow does.
func TestNoReturn(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.app.Exec = func(context.Context, *kubelet.Process) (int, error) { runtime.Goexit(); return 0, nil }
		w.pod.Ports = map[int]func(context.Context, net.Conn) error{80: func(context.Context, net.Conn) error { runtime.Goexit(); return nil }}
		_ = w.spdy(w.url("/exec/default/web/app", "output", "1"), "v4.channel.k8s.io").StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		_ = w.webSocket(w.url("/exec/default/web/app", "output", "1"), "v5.channel.k8s.io").StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		f := forward(w, forwards["SPDY"](w))
		data, _ := f.connect(80)
		_, _ = io.Copy(io.Discard, data)
		f.close()
		sessions, err := w.AwaitSessions(t.Context(), 3)
		require.NoError(t, err)
		for _, s := range sessions {
			assert.ErrorContains(t, s.Err, "the function of the test has not returned")
		}
	})
}
