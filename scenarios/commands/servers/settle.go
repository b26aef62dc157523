package servers

import (
	"context"
	"fmt"

	"snowglobe.test/scenarios/engine"
)

func (s *Servers) Settle() engine.Command {
	return engine.Command{
		Name:    "settle",
		Summary: "wait until nothing more happens by itself",
		Details: `It returns when every watch cache has reached the revision of the store, informers have
seen what the caches have, and requests have been answered. Operations held by a rule do
not count; they are printed, one per line.`,
		Example:   "settle",
		Needs:     s.Running,
		Unbounded: true,
		Run: func(ctx context.Context, _ []string) error {
			settled, err := s.plane.Settle(ctx)
			for _, op := range settled.Held {
				fmt.Fprintln(&s.run.Stdout, op)
			}
			return err
		},
	}
}
