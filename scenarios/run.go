package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"github.com/gorilla/websocket"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/memnet"
)

var runCommand = command{
	name:  "run",
	args:  "[-n NAMESPACE] [-c CONTAINER] POD COMMAND...",
	least: 2, most: anyNumber,
	summary: "run a command in a pod, over WebSocket, and print what it writes to stdout and stderr",
	details: `It fails if the command exits with a code other than 0.`,
	example: "run web-0 -- cat /etc/hostname\n! run web-0 false\nstderr 'exit code 1'",
	prepare: func(flags *pflag.FlagSet) action {
		flags.SetInterspersed(false)
		namespace := namespaceFlag(flags)
		container := flags.StringP("container", "c", "", "")
		return func(ctx context.Context, s *session, args []string) error {
			query := url.Values{"command": args[1:], "stdout": {"true"}, "stderr": {"true"}}
			if *container != "" {
				query.Set("container", *container)
			}
			return s.exec(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/exec?%s", *namespace, args[0], query.Encode()))
		}
	},
}

// execProtocol is the newest of exec over WebSocket: each message begins with the number
// of its channel.
const execProtocol = "v5.channel.k8s.io"

const (
	stdoutChannel = 1
	stderrChannel = 2
	statusChannel = 3
)

// exec prints what a process writes, and returns how it failed.
func (s *session) exec(ctx context.Context, path string) error {
	conn, stop, err := s.webSocket(ctx, path, execProtocol)
	if err != nil {
		return err
	}
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	for {
		_, message, err := conn.ReadMessage()
		switch {
		case err != nil:
			return fmt.Errorf("the connection ended before the command did: %w", err)
		case len(message) == 0:
			continue
		}
		switch message[0] {
		case stdoutChannel, stderrChannel:
			s.out.Write(message[1:])
		case statusChannel:
			return exitStatus(message[1:])
		}
	}
}

// exitStatus is nil if the command has succeeded.
func exitStatus(content []byte) error {
	var status metav1.Status
	if err := json.Unmarshal(content, &status); err != nil {
		return fmt.Errorf("the status of the command is %q: %w", content, err)
	}
	if status.Status == metav1.StatusSuccess {
		return nil
	}
	return errors.New(status.Message)
}

// webSocket opens one as the script's current user. The client dials, and the way to the
// API servers is for requests, so a reverse proxy is between them. stop closes all.
func (s *session) webSocket(ctx context.Context, path, protocol string) (*websocket.Conn, func(), error) {
	config, err := s.config(scriptAgent)
	if err != nil {
		return nil, nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, err
	}
	silent := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{Transport: transport, ErrorLog: silent, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	var running sync.WaitGroup
	server := &http.Server{ErrorLog: silent, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		proxy.ServeHTTP(w, r)
	})}
	listener := memnet.Listen()
	running.Go(func() { _ = server.Serve(listener) }) // it ends when the server is closed
	dialer := &websocket.Dialer{NetDialContext: listener.DialNetwork, Subprotocols: []string{protocol}}
	conn, response, err := dialer.DialContext(ctx, "ws://"+target.Host+path, nil)
	stop := func() {
		if conn != nil {
			_ = conn.Close()
		}
		_ = server.Close()
		running.Wait()
	}
	if err != nil {
		stop()
		return nil, nil, refusal(err, response)
	}
	return conn, stop, nil
}

// refusal is why a WebSocket was not opened, as the API server says.
func refusal(err error, response *http.Response) error {
	if response == nil {
		return err
	}
	content, _ := io.ReadAll(response.Body) // what has been read already
	var status metav1.Status
	if json.Unmarshal(content, &status) == nil && status.Message != "" {
		return errors.New(status.Message)
	}
	return fmt.Errorf("%w: %s", err, response.Status)
}
