package suite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"

	"snowglobe.test/conformance/ledger"
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/internal/turn"
)

// Launcher starts control planes beside a cluster, of the same kind, each on a store of its
// own.
type Launcher struct {
	launch  func(ctx context.Context, opts ...envtest.Option) (*envtest.ControlPlane, error)
	network Network
	turn    turn.Lock
	shared  []*sharing // the most recently used at the end
}

// sharing is a control plane that cases share by its name.
type sharing struct {
	name   string
	cp     *envtest.ControlPlane
	ledger *ledger.Ledger
	cases  int // that use it now
}

// maxIdle is how many control planes wait for further cases to share them. Each costs
// memory, and time of whatever looks at all goroutines of the process.
const maxIdle = 3

// NewLauncher returns a launcher that starts control planes with a function.
func NewLauncher(start func(ctx context.Context, opts ...envtest.Option) (*envtest.ControlPlane, error)) *Launcher {
	return &Launcher{launch: start, turn: turn.New()}
}

// start starts a control plane that reaches what cases serve.
func (l *Launcher) start(ctx context.Context, opts ...envtest.Option) (*envtest.ControlPlane, error) {
	return l.launch(ctx, append([]envtest.Option{l.network.Option()}, opts...)...)
}

// share returns the control plane of a name, which the first call starts. The caller calls done
// when it does not use the control plane any more.
func (l *Launcher) share(ctx context.Context, name string, opts ...envtest.Option) (*sharing, error) {
	if err := l.turn.Take(ctx); err != nil {
		return nil, err
	}
	defer l.turn.Give()
	var s *sharing
	if at := slices.IndexFunc(l.shared, func(s *sharing) bool { return s.name == name }); at >= 0 {
		s = l.shared[at]
		l.shared = slices.Delete(l.shared, at, at+1)
	} else {
		cp, err := l.start(context.WithoutCancel(ctx), opts...)
		if err != nil {
			return nil, err
		}
		book, err := ledger.New(cp.Config())
		if err != nil {
			return nil, errors.Join(err, cp.Stop(context.WithoutCancel(ctx)))
		}
		s = &sharing{name: name, cp: cp, ledger: book}
	}
	s.cases++
	l.shared = append(l.shared, s)
	return s, nil
}

// done says that a case does not use a shared control plane any more. If more than maxIdle of
// them are not in use, it stops the one of these that was used least recently.
func (l *Launcher) done(ctx context.Context, s *sharing) error {
	if err := l.turn.Take(ctx); err != nil {
		return err
	}
	defer l.turn.Give()
	s.cases--
	idle, oldest := 0, 0
	for at, other := range slices.Backward(l.shared) {
		if other.cases == 0 {
			idle, oldest = idle+1, at
		}
	}
	if idle <= maxIdle {
		return nil
	}
	cp := l.shared[oldest].cp
	l.shared = slices.Delete(l.shared, oldest, oldest+1)
	return cp.Stop(ctx)
}

// Stop stops the control planes that cases shared.
func (l *Launcher) Stop(ctx context.Context) error {
	if err := l.turn.Take(ctx); err != nil {
		return err
	}
	defer l.turn.Give()
	var errs []error
	for _, s := range l.shared {
		errs = append(errs, s.cp.Stop(ctx))
	}
	l.shared = nil
	return errors.Join(errs...)
}

// Launch starts a control plane beside the cluster, until the case ends, and returns it
// with a T whose clients are for it.
func (t *T) Launch(ctx context.Context, opts ...envtest.Option) (*envtest.ControlPlane, *T) {
	cp, err := t.Cluster.Launcher.start(ctx, opts...)
	t.Must(err, "launch a control plane beside %s", t.Cluster.Name)
	other := t.beside(cp, nil)
	t.Cleanup(func(ctx context.Context) error { return errors.Join(other.cleanUp(ctx), cp.Stop(ctx)) })
	return cp, other
}

// NotLaunched asserts that no control plane starts with these options, and returns why.
func (t *T) NotLaunched(ctx context.Context, opts ...envtest.Option) string {
	cp, err := t.Cluster.Launcher.start(ctx, opts...)
	if err == nil {
		t.Cleanup(cp.Stop)
	}
	t.Expect(err).To(gomega.HaveOccurred(), "a control plane started that should have been refused")
	return err.Error()
}

// Refuses asserts that no control plane starts with these flags, because of an error that says
// why.
func (t *T) Refuses(ctx context.Context, why string, flags ...string) {
	t.Expect(t.NotLaunched(ctx, envtest.WithFlags(flags...))).To(gomega.ContainSubstring(why),
		"the refusal of a control plane with %q", flags)
}

// Shared is Launch for cases that ask for the same server: the first that asks for a name
// launches it, with these options, and it lives on while it is in use, or among the maxIdle that
// were used most recently. Cases must not break it, and are not alone in it.
func (t *T) Shared(ctx context.Context, name string, opts ...envtest.Option) (*envtest.ControlPlane, *T) {
	launcher := t.Cluster.Launcher
	shared, err := launcher.share(ctx, name, opts...)
	t.Must(err, "launch the control plane %s beside %s", name, t.Cluster.Name)
	other := t.beside(shared.cp, shared.ledger.Page(t.id))
	t.Cleanup(func(ctx context.Context) error { return errors.Join(other.cleanUp(ctx), launcher.done(ctx, shared)) })
	return shared.cp, other
}

// Restarting starts a server again, and returns when it accepts requests. The function that
// it returns waits until the server is ready.
func (t *T) Restarting(ctx context.Context, server *envtest.Server) (ready func()) {
	done := make(chan error, 1)
	go func() { done <- server.Restart(ctx) }()
	t.Eventually(ctx, func() error { return ErrorOf(t.Kube.Discovery().ServerVersion()) }).
		Should(gomega.Succeed(), "the server does not accept requests")
	return func() { t.Must(<-done, "start the server again") }
}

// well is the line of a check that passes, in a readiness report.
var well = regexp.MustCompile(`^\[\+\]\S+ ok$`)

// Readyz is the code of the server's readiness report, and each line of it but those of checks
// that are well. A line that is there twice is told.
func (t *T) Readyz(ctx context.Context) string {
	got := t.Get(ctx, "/readyz?verbose")
	seen := sets.New[string]()
	lines := strings.Split(strings.TrimSpace(string(got.Body)), "\n")
	return fmt.Sprintf("%d %q", got.Code, slices.DeleteFunc(lines, func(line string) bool {
		again := seen.Has(line)
		seen.Insert(line)
		return !again && well.MatchString(line)
	}))
}

// Gate holds operations of a control plane.
func (t *T) Gate(cp *envtest.ControlPlane, match string) *fault.Gate {
	gate, err := cp.Faults().Gate(match)
	t.Must(err, "hold %s", match)
	return gate
}

// Inject gives a control plane a rule of faults.
func (t *T) Inject(cp *envtest.ControlPlane, text string) *fault.Entry {
	rule, err := cp.Faults().Inject(text)
	t.Must(err, "inject %s", text)
	return rule
}

// beside returns a T for another control plane, and for what the case makes there.
func (t *T) beside(cp *envtest.ControlPlane, page *ledger.Page) *T {
	cluster := *t.Cluster
	cluster.Config = cp.Config()
	other, err := newT(&cluster, page, t.id, t.fail)
	t.Must(err, "clients of a control plane beside %s", t.Cluster.Name)
	return other
}
