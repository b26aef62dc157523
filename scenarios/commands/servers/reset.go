package servers

import (
	"context"

	"snowglobe.test/scenarios/engine"
)

// Reset is the command that brings the store back.
func (s *Servers) Reset() engine.Command {
	return engine.Command{
		Name:    "reset",
		Summary: "bring the store back to its state right after the start, below the running servers",
		Details: `Everything that was written since is gone, as between two tests that share a control
plane: watchers are told, and the servers forget answers that they keep for some time. Only
the memory store can do it.`,
		Example:   "reset",
		Unbounded: true,
		Needs:     s.Running,
		Run:       func(ctx context.Context, _ []string) error { return s.plane.Reset(ctx) },
	}
}
