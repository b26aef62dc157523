package scenarios

import (
	"context"
	"errors"

	"snowglobe.test/envtest/fault"
)

var faultsCommand = command{
	name:  "faults",
	args:  "FILE",
	least: 1, most: 1,
	summary: "apply the rules in a file to every server of the script",
	details: `FILE has one rule per line, like the file for "snowglobe run --faults", and # begins a
comment. Unlike rules added by commands, these are in force on every server, including
one that is started again. The command must come before the first start.`,
	example:    "faults plan.faults",
	noNegation: true,
	run: func(_ context.Context, s *session, args []string) error {
		if s.server != nil || s.hadServer {
			return errors.New("the first API server has started already; write it before the first start")
		}
		plan, err := fault.ParsePlan(args[0], s.ts.ReadFile(args[0]), nil)
		if err != nil {
			return err
		}
		s.opts.Faults = append(s.opts.Faults, plan...)
		return nil
	},
}
