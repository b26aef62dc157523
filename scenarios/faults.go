package scenarios

import (
	"fmt"
	"slices"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

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

// noteFired remembers which rules never fired on any server, now that one more
// server has stopped.
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
