package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestClientProcesses spreads the watchers of a load over three processes, beside that of the server.
func TestClientProcesses(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	opts := small()
	opts.Transport, opts.Watchers, opts.StreamsPerConnection, opts.ClientProcesses = TransportTLS, 11, 2, []string{program, program}
	report, err := Watch(t.Context(), opts)
	require.NoError(t, err)
	load := report.Loads[0]
	assert.Equal(t, 11*load.Events, load.Deliveries)
	assert.EqualValues(t, load.Deliveries, load.Latency.Count, "each is measured, wherever it came")
	assert.EqualValues(t, 11, load.OpenLatency.Count)
	assert.Equal(t, 2, load.ClientProcesses)
	assert.Greater(t, load.ClockError, time.Duration(0))
	assert.Less(t, load.ClockError, time.Second)
	assert.Less(t, load.Latency.Max, time.Minute, "the clocks are compared")
}

// TestClientProcessesFail names the command that is to blame.
func TestClientProcessesFail(t *testing.T) {
	for command, want := range map[string]string{
		"snowglobe-is-not-here": `"snowglobe-is-not-here"`,
		"false":                 `["false" "bench" "clients"]: exit status 1`,
		"true":                  "ended without a result",
		"echo hello":            "printed what is no measurement; is it the same release of this program?",
	} {
		opts := small()
		opts.ClientProcesses = []string{command}
		_, err := Watch(t.Context(), opts)
		assert.ErrorContains(t, err, want, command)
	}
}

func TestClientProcessesRefused(t *testing.T) {
	for want, change := range map[string]func(*WatchOptions){
		"transport process: client processes": func(o *WatchOptions) { o.Transport = TransportProcess },
		"leave out either them or the floors": func(o *WatchOptions) { o.Floors = true },
		"or the client processes":             func(o *WatchOptions) { o.Slow = 0.5 },
		"1 watchers are too few":              func(o *WatchOptions) { o.Watchers = 1 },
		"needs a command":                     func(o *WatchOptions) { o.ClientProcesses = []string{" "} },
	} {
		opts := small()
		opts.Transport, opts.ClientProcesses = TransportTLS, []string{"true"}
		change(&opts)
		_, err := Watch(t.Context(), opts)
		assert.ErrorContains(t, err, want)
	}
}

// TestClientsEnd ends with the measurement that has started it.
func TestClientsEnd(t *testing.T) {
	err := Clients(t.Context(), io.MultiReader(), io.Discard, io.Discard)
	assert.ErrorContains(t, err, "what to watch is not known: EOF; a measurement with --client-process starts this command")

	in, write := io.Pipe()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrClosedPipe)
	require.ErrorIs(t, Clients(ctx, in, io.Discard, io.Discard), io.ErrClosedPipe)
	require.NoError(t, write.Close())

	in, write = io.Pipe()
	go func() {
		_ = json.NewEncoder(write).Encode(clientsRequest{Options: small().withDefaults()})
		_ = write.Close()
	}()
	require.ErrorContains(t, Clients(t.Context(), in, io.Discard, io.Discard), "the measurement has ended")
}

// TestAnotherClock has a process whose clock is an hour ahead begin when we do.
func TestAnotherClock(t *testing.T) {
	p := &clientProcess{begin: make(chan time.Time, 1), opened: make(chan struct{}), clock: &remoteClock{}, after: &remoteClock{}}
	zero := time.Now()
	p.begin <- zero
	var told bytes.Buffer
	answer, err := json.Marshal(clientsAnswer{Open: true})
	require.NoError(t, err)
	require.NoError(t, p.hear(t.Context(), answer, &told))
	for range pings {
		answer, err := json.Marshal(clientsAnswer{Clock: time.Now().Add(time.Hour).UnixNano()})
		require.NoError(t, err)
		require.NoError(t, p.hear(t.Context(), answer, &told))
	}
	clocks, begin, found := strings.Cut(told.String(), toldBegin)
	require.True(t, found, "%s", &told)
	assert.Equal(t, strings.Repeat(toldClock+"\n", pings), clocks)

	g := &guest{load: &load{}, begin: make(chan time.Time, 1)}
	g.listen(bufio.NewReader(strings.NewReader(toldBegin+begin)), func(error) {})
	begun := <-g.begin
	assert.InDelta(t, time.Hour, begun.Sub(zero), float64(p.clock.within)+float64(time.Millisecond))
}

// TestAccess tells another machine what is in files, and what it cannot know.
func TestAccess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	told, err := accessOf(&rest.Config{
		Host: "https://server", BearerTokenFile: file, Impersonate: rest.ImpersonationConfig{UserName: "jane"},
		TLSClientConfig: rest.TLSClientConfig{CAFile: file, CertFile: file, KeyFile: file, ServerName: "kubernetes"},
		ExecProvider:    &clientcmdapi.ExecConfig{Command: "login", InteractiveMode: clientcmdapi.NeverExecInteractiveMode},
	})
	require.NoError(t, err)
	text, err := json.Marshal(told)
	require.NoError(t, err)
	var heard access
	require.NoError(t, json.Unmarshal(text, &heard))
	secret := []byte("secret\n")
	assert.Equal(t, &rest.Config{
		Host: "https://server", BearerToken: "secret", Impersonate: rest.ImpersonationConfig{UserName: "jane"},
		TLSClientConfig: rest.TLSClientConfig{CAData: secret, CertData: secret, KeyData: secret, ServerName: "kubernetes"},
		ExecProvider:    &clientcmdapi.ExecConfig{Command: "login", InteractiveMode: clientcmdapi.NeverExecInteractiveMode},
	}, heard.config())

	for want, config := range map[string]*rest.Config{
		"read the token of the kubeconfig":        {BearerTokenFile: file + "s"},
		"read the certificates of the kubeconfig": {TLSClientConfig: rest.TLSClientConfig{CAFile: file + "s"}},
		"auth-provider":                           {AuthProvider: &clientcmdapi.AuthProviderConfig{}},
		"proxy-url":                               {Proxy: http.ProxyFromEnvironment},
	} {
		_, err := accessOf(config)
		assert.ErrorContains(t, err, want)
	}
}

// TestRemoteClock believes the fastest answer, and tells how far it can be wrong.
func TestRemoteClock(t *testing.T) {
	c := &remoteClock{}
	ours := time.Now()
	for number := range pings {
		takes := time.Duration(10+number%5) * time.Millisecond // of which the way back is most
		again := c.heard(ours, ours.Add(takes), ours.Add(time.Hour+time.Millisecond).UnixNano())
		assert.Equal(t, number < pings-1, again)
	}
	assert.Equal(t, 5*time.Millisecond, c.within)
	assert.InDelta(t, time.Hour, c.offset, float64(c.within))
}
