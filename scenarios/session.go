package scenarios

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllers"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/nodes"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/scenarios/checkers"
)

// session is one run of a script: a store, and the API server running on it, if any.
type session struct {
	script Script
	opts   Options
	// outer is the context of the run. It comes from outside the bubble, where
	// nothing may wait for it; its error is checked between commands instead.
	outer context.Context
	story *story

	verbs         []command
	lines         []string
	recordedLines int
	ts            *testscript.TestScript // the current command's
	out           bytes.Buffer           // the current command's stdout

	store     storage.Backend // nil before the first start
	storeKind string
	server    *envtest.ControlPlane
	user      []string                        // who makes the script's requests: the arguments of "as"
	via       *envtest.Client                 // the path of the requests; nil for client-0
	paths     map[string]*envtest.Client      // the others, by what "via" calls them
	identity  *rest.Config                    // what the user and the path come to
	mediaType string                          // what clients accept; empty for JSON
	streams   map[string]*stream              // the watches, by name
	fakes     map[string]*fake                // by host
	doors     sync.Map                        // how to reach them, by host: API servers dial while the script goes on
	rules     []*scriptRule                   // of the script, in the order in which they were given
	stopping  []chan error                    // the ends of servers that are being stopped
	programs  map[string]*controllers.Program // what runs beside the servers, by name
	nodes     *nodes.Nodes                    // nil for none
	pods      *podTable                       // what the script says of their Pods
	excused   bool                            // the server was expected to crash, and did
	serverLog string
	unfired   []fault.Rule     // rules of the run that never fired on any server that has stopped
	hadServer bool             // a server has stopped
	typed     *bufio.Scanner   // what a person types at a prompt; nil before the first
	steps     []string         // of the order that the next server starts with
	report    *checkers.Report // of the last check
	spent     Spent
}

func newSession(ctx context.Context, script Script, opts Options) *session {
	return &session{script: script, opts: opts, outer: ctx, story: newStory(), lines: script.lines(), streams: map[string]*stream{}, fakes: map[string]*fake{}, programs: map[string]*controllers.Program{}, verbs: commands()}
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
	config, err := s.onceConfig(agent)
	if err == nil && agent == scriptAgent {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noRetry{next} })
	}
	return config, err
}

// onceConfig is config for who sends requests by hand, and so never retries.
func (s *session) onceConfig(agent string) (*rest.Config, error) {
	if s.server == nil {
		return nil, errNoServer
	}
	config := rest.CopyConfig(s.identity)
	config.UserAgent, config.WarningHandler = agent, rest.NoWarnings{}
	if s.script.mutation != nil {
		config.Wrap(s.script.mutation.transport)
	}
	if agent != lookupAgent {
		s.translate(config)
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
	s.endStreams()
	if s.server != nil {
		errs = append(errs, s.stop(ctx))
	}
	errs = append(errs, s.stopFakes(ctx))
	if s.store != nil {
		defer timing(&s.spent.Shutdown)()
		errs = append(errs, s.store.Stop(ctx))
	}
	return errors.Join(errs...)
}

// serverOptions returns what the options of the run mean for every server.
func (s *session) serverOptions() []envtest.Option {
	opts := []envtest.Option{envtest.WithFaults(s.opts.Faults.String()), envtest.WithSharedPlan()}
	if s.opts.FullTrace || s.script.checks() {
		opts = append(opts, envtest.WithFullTrace())
	}
	if seed := s.seed(); seed != nil {
		opts = append(opts, envtest.WithSeed(*seed))
	}
	if len(s.steps) > 0 {
		opts = append(opts, envtest.WithOrder(s.steps...))
		s.steps = nil
	}
	return append(opts, s.opts.Servers...)
}

// noteFired keeps the rules that never fired on any server, now that another stopped.
func (s *session) noteFired(server *envtest.ControlPlane) {
	idle := slices.DeleteFunc(server.Faults().Unfired(), func(rule fault.Rule) bool { return !slices.Contains(s.opts.Faults, rule) })
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
