package scenarios

import (
	"context"
	"fmt"
)

var settleCommand = command{
	name:    "settle",
	summary: "wait until nothing more happens by itself",
	details: `It returns when every watch cache has reached the revision of the store, informers have
seen what the caches have, and requests have been answered. Operations held by a rule do
not count; they are printed, one per line.`,
	example:   "settle",
	onServer:  true,
	unbounded: true,
	run: func(ctx context.Context, s *session, _ []string) error {
		settled, err := s.server.Settle(ctx)
		for _, op := range settled.Held {
			fmt.Fprintln(&s.out, op)
		}
		return err
	},
}
