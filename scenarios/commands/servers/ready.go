package servers

import (
	"context"

	"snowglobe.test/scenarios/engine"
)

func (s *Servers) Ready() engine.Command {
	return engine.Command{
		Name:    "ready",
		Asserts: true,
		Summary: "wait until /readyz answers 200",
		Details: `It fails after ` + engine.Patience.String() + `, and says which checks are failing and which hooks are held.`,
		Example: "ready",
		Needs:   s.Running,
		Run:     func(ctx context.Context, _ []string) error { return s.plane.WaitReady(ctx) },
	}
}
