package scenarios

import "context"

func readyCommand() command {
	return command{
		name:    "ready",
		summary: "wait until /readyz answers 200",
		details: `It fails after ` + patience.String() + `, and says which checks are red and which hooks are held.`,
		example: "ready",
		prepare: plain(func(ctx context.Context, s *session, args []string) error {
			if len(args) > 0 {
				return errUsage
			}
			server, err := s.running()
			if err != nil {
				return err
			}
			return server.WaitReady(ctx)
		}),
	}
}
