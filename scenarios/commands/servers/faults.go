package servers

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

func (s *Servers) Faults() engine.Command {
	return engine.Command{
		Name:    "faults",
		Args:    "FILE",
		Summary: "apply the rules in a file to every server of the script",
		Details: `FILE has one rule per line, like the file for "snowglobe run --faults", and # begins a
comment. Unlike rules added by commands, these are in force on every server, including
one that is started again. The command must come before the first server is shut down.`,
		Example:    "faults plan.faults",
		NoNegation: true,
		Files: func(_ *pflag.FlagSet, args []string) []engine.NamedFile {
			return engine.NamedFiles(func(text string) error { return checkPlan(args[0], text) }, args[0])
		},
		Run: func(_ context.Context, args []string) error {
			if s.stopped {
				return errors.New("the first API server has been shut down already; write it before that")
			}
			text, err := s.run.ReadFile(args[0])
			if err != nil {
				return err
			}
			plan, err := fault.ParsePlan(args[0], text, nil)
			if err != nil {
				return err
			}
			s.config.Faults = append(s.config.Faults, plan...)
			if s.plane != nil {
				_, err = s.plane.Faults().Add(plan...)
			}
			return err
		},
	}
}

// checkPlan returns the first mistake of a plan.
func checkPlan(file, text string) error {
	_, err := fault.ParsePlan(file, text, nil)
	if mistake, ok := errors.AsType[*fault.SyntaxError](err); ok {
		return &script.LineError{Line: mistake.Line, Err: fmt.Errorf("column %d: %s", mistake.Column, mistake.Reason)}
	}
	return err
}
