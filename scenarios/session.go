package scenarios

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage/memory"
)

// session is one run of a script: a store, and the API server running on it, if any.
type session struct {
	script Script
	opts   Options
	// outer is the context of the run. It comes from outside the bubble, where
	// nothing may wait for it; its error is checked between commands instead.
	outer context.Context
	story *story

	lines         []string
	recordedLines int
	ts            *testscript.TestScript // the current command's

	store      *memory.Store
	server     *envtest.ControlPlane
	identity   *rest.Config            // the user who makes the script's requests
	heldCaches map[string]*fault.Entry // rules of "hold cache", by resource
	excused    bool                    // the server was expected to crash, and did
	serverLog  string
	unfired    []fault.Rule // rules that never fired on any server that has stopped
	hadServer  bool         // a server has stopped
}

func newSession(ctx context.Context, script Script, opts Options) *session {
	return &session{script: script, opts: opts, outer: ctx, story: newStory(), lines: script.lines()}
}

// tamper breaks what a script demonstrates, to prove in a test that the script notices.
type tamper struct {
	start      func(*startRequest)                       // may change how a server is started
	started    func(*envtest.ControlPlane) error         // called with each server after its start
	transport  func(http.RoundTripper) http.RoundTripper // wraps that of the script's requests
	openCaches bool                                      // "hold cache" does nothing
	order      func([]string)                            // may change the order in which hooks are released
	standstill bool                                      // "advance" does nothing
}

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

// apiServer is the API server of a control plane that has one.
func apiServer(cp *envtest.ControlPlane) *envtest.Server { return cp.Servers()[0] }

// The user agents of a session's requests.
const (
	scriptAgent = "script"        // those the script asks for
	lookupAgent = "script-lookup" // those a command needs to do its work
)

// config returns the client configuration of the script's current user.
func (s *session) config(agent string) (*rest.Config, error) {
	if s.server == nil {
		return nil, errNoServer
	}
	config := rest.CopyConfig(s.identity)
	config.UserAgent = agent
	if agent == scriptAgent {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noRetry{next} })
	}
	if s.opts.tamper.transport != nil {
		config.Wrap(s.opts.tamper.transport)
	}
	return config, nil
}

// noRetry keeps clients from retrying: a script asks once and looks at the
// answer. Clients retry only if the answer has a Retry-After header.
type noRetry struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (n noRetry) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(req)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// close stops whatever is still running at the end of the script.
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

// serverOptions returns what the options of the run mean for every server.
func (s *session) serverOptions() []envtest.Option {
	opts := []envtest.Option{envtest.WithFaults(s.opts.Faults.String())}
	if s.opts.FullTrace {
		opts = append(opts, envtest.WithFullTrace())
	}
	if s.opts.Seed != nil {
		opts = append(opts, envtest.WithSeed(*s.opts.Seed))
	}
	return opts
}

// noteFired keeps the rules that never fired on any server, now that another stopped.
func (s *session) noteFired(server *envtest.ControlPlane) {
	idle := server.Faults().Unfired()
	if !s.hadServer {
		s.unfired, s.hadServer = idle, true
		return
	}
	s.unfired = slices.DeleteFunc(s.unfired, func(rule fault.Rule) bool { return !slices.Contains(idle, rule) })
}

// checkFired fails a script in which a rule of the plan never fired.
func (s *session) checkFired() error {
	if len(s.unfired) == 0 {
		return nil
	}
	return fmt.Errorf("%s: the rule %q never fired; take it out of the plan, or mark it optional", s.script.File, s.unfired[0])
}

// kube returns a typed client for the script's own requests.
func (s *session) kube() (kubernetes.Interface, error) {
	config, err := s.config(scriptAgent)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
