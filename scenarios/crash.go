package scenarios

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

var crashCommand = command{
	name:    "crash",
	args:    "[REGEXP]",
	most:    1,
	summary: "wait until the API server crashes, and stop what is left of it",
	details: `A crash is anything that would have ended a kube-apiserver process: a failed
post-start hook, a fatal error, a panic. The reason lands in stdout; it must match REGEXP,
if one is given.`,
	example:    "crash 'scheduling/bootstrap-system-priority-classes'",
	noNegation: true,
	onServer:   true,
	run: func(ctx context.Context, s *session, args []string) error {
		match, err := regexp.Compile(strings.Join(args, ""))
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		select {
		case <-s.server.Crashed():
		case <-ctx.Done():
			return fmt.Errorf("the API server has not crashed: %w", context.Cause(ctx))
		}
		crash := s.server.Err()
		fmt.Fprintln(s.ts.Stdout(), crash)
		if !match.MatchString(crash.Error()) {
			return fmt.Errorf("the API server crashed, but the reason does not match %q: %w", match, crash)
		}
		s.excused = true
		return s.stop(ctx)
	},
}
