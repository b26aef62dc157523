package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"snowglobe.test/envtest/trace"
)

// Config is how a Set is made. The zero value works.
type Config struct {
	// Seed decides, with a rule and an operation, whether a rule with a Probability applies.
	Seed uint64
	// Names are what rules may name; AddNames adds to them.
	Names Names
	// Impossible are actions that no rule may have here, with the reason of each.
	Impossible map[ActionKind]string
	// Latency makes operations take time, where time is virtual; nil for none.
	Latency Latency
	// Trace is told of every decision but to pass; it may be nil.
	Trace *trace.Recorder
}

// Latency is how long operations take in virtual time, where work by itself takes none. Its
// methods are called from the goroutine of the operation, without a lock.
type Latency interface {
	// Of returns how long an operation takes that is about to happen, and whether it
	// waits for a turn of the Scheduler as well.
	Of(op Operation) (latency time.Duration, hasTurn bool)
	// Take returns when that time has passed.
	Take(latency time.Duration)
	// Reseed has another seed decide how long operations take from now on.
	Reseed(seed uint64)
	// Report is told what became of an operation.
	Report(op Operation, failed bool)
	// Fail is Report of a failure that a rule has made. It may take time.
	Fail(op Operation)
}

// Set holds the rules of one control plane, or of several that a test disturbs
// together, and is asked by their injectors. Its methods may be called from any
// goroutine, and At on a nil Set, where everything passes. Make it with New.
type Set struct {
	config Config
	active atomic.Bool // there are rules or a scheduler

	// mu guards what follows. No goroutine waits while holding it, lest a bubble of
	// virtual time never fall idle.
	mu          sync.Mutex
	closed      bool
	entries     []*Entry
	gone        []Rule // removed rules that should have fired and never did
	counts      occurrences
	scheduler   Scheduler
	unscheduled chan struct{} // closed when the scheduler is replaced
	queue       []*waiter     // for the scheduler, in the order of their arrival

	// telling guards the observers of network paths. It is held while they are told,
	// so that each learns of changes in their order, and is taken before mu.
	telling   sync.Mutex
	observers []*observer
}

// New makes a Set without rules.
func New(config Config) *Set {
	return &Set{config: config, counts: newOccurrences(), unscheduled: make(chan struct{})}
}

// ErrClosed is why a rule is refused after Close.
var ErrClosed = errors.New("the set of faults is closed: the control plane has stopped")

// ErrCrashed is the error of an operation before which a rule crashed its server.
var ErrCrashed = errors.New("the API server crashed")

// Reseed makes another seed decide from now on: of rules that are added, and, where time is virtual,
// whose turn it is and how long operations take.
func (s *Set) Reseed(seed uint64) {
	if s.config.Latency != nil {
		s.config.Latency.Reseed(seed)
	}
	s.mu.Lock()
	s.config.Seed = seed
	scheduler := s.scheduler
	s.mu.Unlock()
	if scheduler != nil {
		scheduler.Reseed(seed)
	}
}

// Seed is that of the Config, or of the last Reseed.
func (s *Set) Seed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.Seed
}

// Active reports whether At may do anything but pass; if not, prepare nothing for it.
func (s *Set) Active() bool { return s != nil && s.active.Load() }

// Latency is that of the Config: if it is not nil, At wants to hear of each request and
// call of the store, Active or not.
func (s *Set) Latency() Latency { return s.config.Latency }

// Concerns is Active for operations of one identity: there is a scheduler, or a
// rule that matches. Unlike At, it does not count the operation.
func (s *Set) Concerns(op Operation) bool {
	if !s.Active() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scheduler != nil || slices.ContainsFunc(s.entries, func(e *Entry) bool { return !e.rule.Kind.stands() && e.rule.Covers(&op) })
}

// About reports whether there are rules that may keep operations of a server at one of these
// points from happening, be it only for some of the objects of a resource. It counts nothing.
func (s *Set) About(server, resource string, points ...string) bool {
	if !s.Active() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scheduler != nil || slices.ContainsFunc(s.entries, func(e *Entry) bool {
		r := &e.rule
		return !e.open && suits(r.Server, server) && (r.Resource == "" || glob(r.Resource, resource)) &&
			(r.Kind.stands() || slices.ContainsFunc(points, func(point string) bool { return glob(r.Point, point) }))
	})
}

// At says what becomes of an operation, after it has waited out holds, delays and
// freezes. describe is called only if the Set is Active. An error, when ctx ends
// first or the catalogue lacks the point, means that the operation must not go on.
//
// Rules are looked at once, on arrival, in the order in which they were added. Those that
// make it wait (Hold, Delay, Freeze) add up, and are waited out in that order. The first rule
// with any other action decides, and the rules after it do not count the operation. For
// example, of "delay", "fail" and "hold" on the same point, the operation is delayed and then
// fails; the hold never sees it. With a scheduler the operation takes its turn before the
// look, unless Latency says that it has none, and again after it has waited.
func (s *Set) At(ctx context.Context, describe func() Operation) (Decision, error) {
	switch {
	case s == nil:
		return Decision{}, nil
	case s.active.Load():
		return s.at(ctx, describe())
	case s.config.Latency != nil:
		latency, _ := s.config.Latency.Of(describe())
		s.config.Latency.Take(latency)
	}
	return Decision{}, nil
}

func (s *Set) at(ctx context.Context, op Operation) (Decision, error) {
	op.Phase = cmp.Or(op.Phase, Before)
	kind := kindOf(&op)
	if kind == nil {
		return Decision{}, fmt.Errorf("a point is asked about that is not in the catalogue: %s, verb %q, phase %s", op.Point, op.Verb, op.Phase)
	}
	op.Occurrence = 0 // op may be a copy of an operation that was counted before
	op.Occurrence = s.count(&op)
	latency, hasTurn := time.Duration(0), true
	if s.config.Latency != nil {
		latency, hasTurn = s.config.Latency.Of(op)
	}
	if hasTurn {
		if err := s.turn(ctx, &op, latency); err != nil {
			return Decision{}, err
		}
	}
	waits, outcome := s.judge(kind, &op)
	waited := false
	for _, e := range waits {
		did, err := s.wait(ctx, e, &op)
		if err != nil {
			return Decision{}, err
		}
		waited = waited || did
	}
	if waited {
		if err := s.turn(ctx, &op, 0); err != nil {
			return Decision{}, err
		}
	}
	if outcome == nil || s.isClosed() {
		return Decision{}, nil
	}
	s.record(trace.Applied, outcome, &op, nil)
	return Decision{Kind: outcome.rule.Kind, entry: outcome, op: &op}, nil
}

// Decision is what becomes of an operation. The zero value is to let it pass.
// It is small, because every operation gets one.
type Decision struct {
	// Kind is Pass or what to do; never Hold, Delay or Freeze, which At waits out.
	Kind  ActionKind
	entry *Entry
	op    *Operation
}

// Rule is the rule that has decided; the zero Decision has none.
func (d Decision) Rule() Rule { return d.entry.rule }

// Operation is what was decided about; the zero Decision has none.
func (d Decision) Operation() Operation { return *d.op }

// Blame is an error that the rule has caused; the text should name the rule.
func (d Decision) Blame(format string, args ...any) error { return d.entry.blame(format, args...) }

// Err is the real error behind the action's With, as a client in the process
// sees it: of etcd's client for the store, a Status or a broken connection for
// HTTP, a net.OpError for dialing. It is nil for actions without an error.
func (d Decision) Err() error {
	if d.Kind != Fail && d.Kind != LoseReply {
		return nil
	}
	with := d.entry.rule.With
	if with == "" { // a connection that is lost before the answer
		if with = Reset; strings.HasPrefix(d.op.Point, "store/") {
			with = Unavailable
		}
	}
	err := with.err(*d.op, d.entry.rule.RetryAfter)
	if with == PlainError {
		return d.entry.blame("%w, because of the rule %q", err, d.entry.rule) // it is for people
	}
	return err
}

// count returns which of the operations with its identity this one is.
func (s *Set) count(op *Operation) int {
	id := op.Priority(0) // its occurrence is not yet known
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.next(id)
}

// judge returns the rules that hold an operation, and the one that decides it or nil.
func (s *Set) judge(kind *PointKind, op *Operation) (waits []*Entry, outcome *Entry) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if !e.takes(kind, op, now) {
			continue
		}
		if !e.rule.Kind.waits() {
			return waits, e
		}
		waits = append(waits, e)
	}
	return waits, nil
}

func (s *Set) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// record tells the trace what a rule does to an operation.
func (s *Set) record(phase trace.Phase, e *Entry, op *Operation, err error) {
	if s.config.Trace == nil {
		return
	}
	f := trace.Fault{
		Phase: phase, Action: string(e.rule.Kind), Rule: e.rule.String(), Point: op.Point, Server: op.Server, Verb: op.Verb,
		Resource: op.Resource, Namespace: op.Namespace, Name: op.Name, Key: op.Key, Caller: op.Caller, Occurrence: op.Occurrence, Err: err,
	}
	if op.Phase != Before {
		f.OperationPhase = string(op.Phase)
	}
	s.config.Trace.Record(f)
}

// Add appends rules: all of them, or none and an error with all that is wrong.
func (s *Set) Add(rules ...Rule) ([]*Entry, error) {
	var all []checked
	var errs []error
	for _, r := range rules {
		valid, err := r.validate(s.Names())
		all, errs = append(all, valid), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, s.possible(all))
	}
	return s.add(all...)
}

// add appends rules with nothing wrong in them, but for what can't be done here.
func (s *Set) add(rules ...checked) ([]*Entry, error) {
	if err := s.possible(rules); err != nil {
		return nil, err
	}
	added := make([]*Entry, len(rules))
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	for i, r := range rules {
		added[i] = newEntry(s, r)
		added[i].setAlarms()
	}
	s.replace(slices.Concat(s.entries, added))
	s.mu.Unlock()
	s.changed(added...)
	return added, nil
}

// possible says which rules can't be done.
func (s *Set) possible(rules []checked) error {
	var errs []error
	for _, r := range rules {
		if why, impossible := s.config.Impossible[r.Kind]; impossible {
			errs = append(errs, fmt.Errorf("rule %q: %s can't be done here: %s", r.Rule, r.Kind, why))
		}
	}
	return errors.Join(errs...)
}

// replace changes the list of rules; mu is held.
func (s *Set) replace(entries []*Entry) {
	s.entries = entries
	s.active.Store(len(s.entries) > 0 || s.scheduler != nil)
}

// AddNames adds to the known names. The error lists rules that name others; they stay.
func (s *Set) AddNames(names Names) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := Names{}
	maps.Copy(known, s.config.Names)
	for what, of := range names {
		known[what] = slices.Compact(slices.Sorted(slices.Values(slices.Concat(known[what], of))))
	}
	s.config.Names = known
	var errs []error
	for _, e := range s.entries {
		errs = append(errs, e.rule.Validate(known))
	}
	return errors.Join(errs...)
}

// Names are the names that exist, as far as they are known; they are not to be changed. The
// post-start hooks are there when a server is about to boot.
func (s *Set) Names() Names {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.Names
}

// Inject reads a rule, such as "freeze cache/configmaps", and adds it.
func (s *Set) Inject(rule string) (*Entry, error) {
	parsed, err := parseRule(rule, s.Names(), 0)
	if err != nil {
		return nil, fmt.Errorf("rule %q: %w", rule, err)
	}
	added, err := s.add(parsed)
	if err != nil {
		return nil, err
	}
	return added[0], nil
}

// Rules returns the rules that are there, in order.
func (s *Set) Rules() []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.entries)
}

// Gate returns the gate of the rule "hold MATCH", and adds the rule if there is none.
func (s *Set) Gate(match string) (*Gate, error) {
	rule, err := parseHold(match, s.Names())
	if err != nil {
		return nil, fmt.Errorf("gate %q: %w", match, err)
	}
	for _, e := range s.Rules() {
		if e.rule.Action == rule.Action && e.rule.Match == rule.Match {
			return e.Gate(), nil
		}
	}
	added, err := s.add(rule)
	if err != nil {
		return nil, fmt.Errorf("gate %q: %w", match, err)
	}
	return added[0].Gate(), nil
}

// Unfired returns rules, removed ones too, that never fired and are not optional.
func (s *Set) Unfired() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	unfired := slices.Clone(s.gone)
	for _, e := range s.entries {
		if e.fired == 0 && !e.rule.Optional {
			unfired = append(unfired, e.rule)
		}
	}
	return unfired
}

// RuleError is an error that a rule has caused, and that names it.
type RuleError struct {
	Rule Rule
	Err  error
}

// Error implements error.
func (e *RuleError) Error() string { return e.Err.Error() }

// Unwrap returns what the rule has caused.
func (e *RuleError) Unwrap() error { return e.Err }

// Is reports whether the target is a *RuleError of the same rule.
func (e *RuleError) Is(target error) bool {
	other, ok := target.(*RuleError)
	return ok && other.Rule == e.Rule
}

// UnfiredError is about a rule that should have fired and never did, which shows nothing.
type UnfiredError struct{ Rule Rule }

// Error implements error.
func (e *UnfiredError) Error() string {
	return fmt.Sprintf("the rule %q never fired; remove it, or mark it optional", e.Rule)
}

// Close removes all rules and the scheduler: what waits, and whatever comes, passes.
func (s *Set) Close() {
	s.mu.Lock()
	if !s.closed {
		s.schedule(nil)
		s.closed = true
	}
	s.mu.Unlock()
	s.removeAll()
}

func (s *Set) removeAll() {
	for _, e := range s.Rules() {
		e.Remove()
	}
}

// Clear removes all rules, and forgets that they were there and how often anything has happened.
func (s *Set) Clear() {
	s.removeAll()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone, s.counts = nil, newOccurrences()
}
