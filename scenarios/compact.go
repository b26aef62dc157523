package scenarios

import (
	"context"

	"snowglobe.test/envtest/fault"
)

var compactCommand = nowOrRule(ruleCommand(fault.Compact, "make the store discard all revisions before its current one, now or before an operation",
	`Without arguments it happens now: a list or watch that continues from an older
revision gets a 410, unless a watch cache has what it needs.`,
	"compact\ncompact http/list resource=configmaps nth=2",
	func(ctx context.Context, s *session, args []string) error {
		switch {
		case len(args) > 0:
			return errUsage
		case s.server == nil:
			return errNoServer
		}
		return s.server.Compact(ctx)
	}))

// nowOrRule says that a command that is a rule may have no arguments.
func nowOrRule(c command) command {
	c.args = "[" + c.args + "]"
	return c
}
