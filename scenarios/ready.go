package scenarios

import (
	"context"
)

var readyCommand = command{
	name:     "ready",
	summary:  "wait until /readyz answers 200",
	details:  `It fails after ` + patience.String() + `, and says which checks are failing and which hooks are held.`,
	example:  "ready",
	onServer: true,
	run:      func(ctx context.Context, s *session, _ []string) error { return s.server.WaitReady(ctx) },
}
