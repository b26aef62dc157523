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
	summary: "give every server of the script the rules in a file",
	details: `FILE has one rule a line, as the file of "snowglobe run --faults", and # begins a
comment. Unlike the rules that commands give, these are in force on every server, also
on one that is started again. It comes before the first start.`,
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
