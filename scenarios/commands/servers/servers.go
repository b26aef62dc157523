// Package servers owns the commands about the script's API servers, their store, the rules in
// force on them, and time. Packages of other commands learn of starts and stops through
// OnOptions, OnStart and OnStop. It knows no client.
package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/internal/nearest"
	"snowglobe.test/internal/wall"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

// Config says how servers are started. Its zero value is fine.
type Config struct {
	// Seed, if not nil, is used in place of the script's.
	Seed *uint64
	// Search, unless it is zero, is used in place of the script's.
	Search sim.Search
	// Faults are rules of every server.
	Faults fault.Plan
	// Options are further options of every server, and Store wraps its store.
	Options []envtest.Option
	Store   func(storage.Backend) storage.Backend
	// Branch, if not nil, is called by "reseed": see engine.Run.Branch.
	Branch func() (script.Script, bool)
}

// Servers are the store of one run, and the control plane on it, if any.
type Servers struct {
	run    *engine.Run
	config Config

	onOptions []func() []envtest.Option
	onStart   []func(*envtest.ControlPlane) error
	onStop    []func(context.Context) error

	store     storage.Backend // nil before the first start
	storeKind string
	plane     *envtest.ControlPlane // nil if none runs
	stopping  []chan error          // the ends of servers that are being stopped
	excused   bool                  // the server was expected to crash, and did
	log       string                // of the last control plane that has stopped
	spent     Spent

	rules   []*scriptRule // of the script, in the order in which they were given
	unfired []fault.Rule  // rules of the run that never fired on any server that has stopped
	stopped bool          // a control plane has stopped
	steps   []string      // of the order in which the next server starts

	reseeded *uint64 // the last seed of "reseed"
}

// Spent is where wall time went.
type Spent struct {
	// Boots counts the starts of API servers, and Boot is how long they took.
	Boots int
	Boot  time.Duration
	// Shutdown is how long stopping the servers and the store took.
	Shutdown time.Duration
}

// New returns the servers of a run, of which none is started.
func New(run *engine.Run, config Config) *Servers { return &Servers{run: run, config: config} }

// OnOptions adds a function that is asked for options at every start.
func (s *Servers) OnOptions(f func() []envtest.Option) { s.onOptions = append(s.onOptions, f) }

// OnStart adds a function that is told of every control plane that has started.
func (s *Servers) OnStart(f func(*envtest.ControlPlane) error) { s.onStart = append(s.onStart, f) }

// OnStop adds a function that is called before a control plane stops.
func (s *Servers) OnStop(f func(context.Context) error) { s.onStop = append(s.onStop, f) }

// ErrNone is the error of what needs a server when none runs.
var ErrNone = errors.New("no API server is running; start one with: start")

// Running returns ErrNone if no server runs.
func (s *Servers) Running() error {
	if s.plane == nil {
		return ErrNone
	}
	return nil
}

// ControlPlane is the one that runs, or nil.
func (s *Servers) ControlPlane() *envtest.ControlPlane { return s.plane }

// Log is what the last control plane that has stopped logged.
func (s *Servers) Log() string { return s.log }

// Spent is where wall time went.
func (s *Servers) Spent() Spent { return s.spent }

// Server finds the server that the arguments name, or the only one.
func (s *Servers) Server(args []string) (*envtest.Server, error) {
	if s.plane == nil {
		return nil, ErrNone
	}
	servers := s.plane.Servers()
	if len(args) == 0 && len(servers) == 1 {
		return servers[0], nil
	}
	var names []string
	for _, server := range servers {
		if len(args) == 1 && server.Name() == args[0] {
			return server, nil
		}
		names = append(names, server.Name())
	}
	if len(args) != 1 {
		return nil, fmt.Errorf("%w: which server? There are %s", engine.ErrUsage, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("%w: no server is called %q%s; there are %s", engine.ErrUsage, args[0], nearest.DidYouMean(args[0], names), strings.Join(names, ", "))
}

// options are those of every server, whatever "start" says.
func (s *Servers) options() []envtest.Option {
	opts := []envtest.Option{
		envtest.WithFaults(s.plan()), envtest.WithStore(storage.Shared{Backend: s.store}),
		envtest.WithObserver(s.run.Observe),
	}
	for _, more := range s.onOptions {
		opts = append(opts, more()...)
	}
	opts = append(opts, envtest.WithFaults(s.config.Faults.String()))
	if seed := s.seed(); seed != nil {
		if s.reseeded == nil {
			_ = s.search(s.run.Script.SeedSearch()) // mistakes in it have been told
		}
		opts = append(opts, envtest.WithSeed(*seed))
	}
	if len(s.steps) > 0 {
		opts = append(opts, envtest.WithOrder(s.steps...))
		s.steps = nil
	}
	return append(opts, s.config.Options...)
}

// stop ends the control plane, what runs beside it, and the rules about it.
func (s *Servers) stop(ctx context.Context) error {
	plane := s.plane
	defer wall.Timing(&s.spent.Shutdown)()
	var errs []error
	for _, end := range s.onStop {
		errs = append(errs, end(ctx))
	}
	s.plane = nil
	err := errors.Join(append(errs, withoutUnfired(plane.Stop(ctx)), s.endStops())...)
	s.log = plane.Log()
	s.noteFired(plane)
	if crash := plane.Err(); crash != nil && !s.excused {
		err = errors.Join(fmt.Errorf("the API server crashed: %w", crash), err)
	}
	return errors.Join(err, s.endRules())
}

// withoutUnfired removes every fault.UnfiredError from the error of a stop: a rule that did
// not fire on this server may fire on another one of the script. See Unfired.
func withoutUnfired(err error) error {
	if _, some := errors.AsType[*fault.UnfiredError](err); !some {
		return err
	}
	joined, several := err.(interface{ Unwrap() []error })
	if !several {
		return nil
	}
	var others []error
	for _, err := range joined.Unwrap() {
		others = append(others, withoutUnfired(err))
	}
	return errors.Join(others...)
}

// endStops waits for the servers that are being stopped.
func (s *Servers) endStops() error {
	var errs []error
	for _, ended := range s.stopping {
		errs = append(errs, <-ended)
	}
	s.stopping = nil
	return errors.Join(errs...)
}

// Close stops the control plane, if there is one.
func (s *Servers) Close(ctx context.Context) error {
	if s.plane == nil {
		return nil
	}
	return s.stop(ctx)
}

// CloseStore stops the store, if there is one, when nothing uses it any more.
func (s *Servers) CloseStore(ctx context.Context) error {
	if s.store == nil {
		return nil
	}
	defer wall.Timing(&s.spent.Shutdown)()
	return s.store.Stop(ctx)
}

// noteFired updates s.unfired when a control plane has stopped: rules that fired on it go.
func (s *Servers) noteFired(plane *envtest.ControlPlane) {
	idle := slices.DeleteFunc(plane.Faults().Unfired(), func(rule fault.Rule) bool { return !slices.Contains(s.config.Faults, rule) })
	if !s.stopped {
		s.unfired, s.stopped = idle, true
		return
	}
	s.unfired = slices.DeleteFunc(s.unfired, func(rule fault.Rule) bool { return !slices.Contains(idle, rule) })
}

// Unfired is an error if a rule of the plan has never fired.
func (s *Servers) Unfired() error {
	if len(s.unfired) == 0 {
		return nil
	}
	return &UnfiredError{s.run.Script.File, s.unfired[0], "take it out of the plan"}
}
