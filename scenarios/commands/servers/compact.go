package servers

import (
	"context"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/scenarios/engine"
)

// Compact is the command that makes the store forget old revisions.
func (s *Servers) Compact() engine.Command {
	command := s.rule(fault.Compact, "make the store discard all revisions before its current one, now or before an "+
		"operation",
		`Without arguments it happens now: a list or watch that continues from an older
revision gets a 410, unless a watch cache has what it needs.`,
		"compact\ncompact http/list resource=configmaps nth=2",
		func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return engine.ErrUsage
			}
			if err := s.Running(); err != nil {
				return err
			}
			return s.plane.Compact(ctx)
		})
	command.Args = "[" + command.Args + "]"
	return command
}
