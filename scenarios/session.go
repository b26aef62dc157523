package scenarios

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage/memory"
)

// session is the world of one run of a script: a store that lives as long as
// the script, and the API server that runs on it now, if any.
type session struct {
	script Script
	opts   Options
	// outer is the context of the run. In virtual time nothing may wait for it,
	// as it comes from outside; it is asked between commands.
	outer context.Context
	story *story

	lines     []string
	toldLines int
	ts        *testscript.TestScript // of the command that runs now

	store      *memory.Store
	server     *envtest.ControlPlane
	identity   *rest.Config            // who the script's requests come from
	heldCaches map[string]*fault.Entry // of "hold cache", by resource
	excused    bool                    // the server was expected to crash, and did
	serverLog  string
	unfired    []fault.Rule // of all servers so far, if there has been one
	wasServer  bool
}

func newSession(ctx context.Context, script Script, opts Options) *session {
	return &session{script: script, opts: opts, outer: ctx, story: newStory(), lines: script.lines()}
}

// tamper takes out what a script shows, so that a test can prove that the script
// notices. The zero value takes out nothing.
type tamper struct {
	// start may change what a server is started with.
	start func(*startRequest)
	// started is called with each server that was started.
	started func(*envtest.ControlPlane) error
	// transport stands between the script and the server.
	transport func(http.RoundTripper) http.RoundTripper
	// openCaches makes "hold cache" do nothing.
	openCaches bool
	// order may change the order in which hooks are released.
	order func([]string)
	// standstill makes "advance" do nothing.
	standstill bool
}

// context returns the context of one command.
func (s *session) context(c command) (context.Context, context.CancelFunc) {
	parent := context.Background()
	if s.opts.RealTime {
		parent = s.outer
	}
	if c.unbounded {
		return context.WithCancel(parent)
	}
	return context.WithTimeoutCause(parent, patience, fmt.Errorf("not within %s", patience))
}

var errNoServer = errors.New("no API server is running; start one with: start")

// running returns the server that runs now.
func (s *session) running() (*envtest.ControlPlane, error) {
	if s.server == nil {
		return nil, errNoServer
	}
	return s.server, nil
}

// apiServer is the API server of a control plane that has one.
func apiServer(cp *envtest.ControlPlane) *envtest.Server { return cp.Servers()[0] }

// startedStore returns the store of the script; the first start makes it.
func (s *session) startedStore(ctx context.Context) (*memory.Store, error) {
	if s.store == nil {
		store := memory.New("script-" + strings.ToLower(rand.Text()))
		if err := store.Start(ctx); err != nil {
			return nil, err
		}
		s.store = store
	}
	return s.store, nil
}

// The user agents of a session's requests: those the script asks for, and those
// a command makes to find its way.
const (
	scriptAgent = "script"
	lookupAgent = "script-lookup"
)

// config returns the client configuration of the script's present identity.
func (s *session) config(agent string) (*rest.Config, error) {
	if _, err := s.running(); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(s.identity)
	config.UserAgent = agent
	if agent == scriptAgent {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return onceOnly{next} })
	}
	if s.opts.tamper.transport != nil {
		config.Wrap(s.opts.tamper.transport)
	}
	return config, nil
}

// onceOnly keeps clients from trying again: a script asks once, and looks at the
// answer. Clients only try again if the answer says when.
type onceOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o onceOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(req)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// close ends what is still running when the script has ended.
func (s *session) close() error {
	ctx := context.WithoutCancel(s.outer)
	var errs []error
	if s.server != nil {
		errs = append(errs, s.stop(ctx))
	}
	if s.store != nil {
		errs = append(errs, s.store.Stop(ctx))
	}
	return errors.Join(errs...)
}
