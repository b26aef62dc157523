package scenarios

import (
	"context"

	"snowglobe.test/envtest/fault"
)

var crashCommand = withServer(ruleCommand(fault.Crash, "make an API server die at once, or before an operation",
	`With a SERVER, or without one if there is only one, it dies now, as if its process had
ended: connections are reset, and its leases stay until they expire. "restart SERVER"
starts it again. To wait until a rule has crashed it, write: await fired crash POINT; to
wait for any other crash, write: await crash`,
	"crash apiserver-1\ncrash store/put resource=configmaps name=default/a",
	func(ctx context.Context, s *session, args []string) error {
		server, err := s.serverOf(args)
		if err != nil {
			return err
		}
		return server.Crash(ctx)
	}))

// withServer adds the name of a server to what a command that is a rule takes.
func withServer(c command) command {
	c.args = "[SERVER] | " + c.args
	return c
}
