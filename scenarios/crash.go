package scenarios

import (
	"context"
	"fmt"
	"regexp"
)

func crashCommand() command {
	return command{
		name:    "crash",
		args:    "[REGEXP]",
		summary: "wait until the API server crashes, and stop what is left of it",
		details: `A crash is anything that would have ended a kube-apiserver process: a failed
post-start hook, a fatal error, a panic. The reason lands in stdout; it must match REGEXP,
if one is given.`,
		example:    "crash 'scheduling/bootstrap-system-priority-classes'",
		noNegation: true,
		prepare: plain(func(ctx context.Context, s *session, args []string) error {
			if len(args) > 1 {
				return errUsage
			}
			pattern := ""
			if len(args) == 1 {
				pattern = args[0]
			}
			match, err := regexp.Compile(pattern)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return s.awaitCrash(ctx, match)
		}),
	}
}

// awaitCrash waits for a crash and fails unless its reason matches.
func (s *session) awaitCrash(ctx context.Context, match *regexp.Regexp) error {
	server, err := s.running()
	if err != nil {
		return err
	}
	select {
	case <-server.Crashed():
	case <-ctx.Done():
		return fmt.Errorf("the API server has not crashed: %w", context.Cause(ctx))
	}
	crash := server.Err()
	fmt.Fprintln(s.ts.Stdout(), crash)
	if !match.MatchString(crash.Error()) {
		return fmt.Errorf("the API server crashed, but the reason does not match %q: %w", match, crash)
	}
	s.excused = true
	return s.stop(ctx)
}
