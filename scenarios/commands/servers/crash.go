package servers

import (
	"context"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/scenarios/engine"
)

// Crash is the command that lets API servers die.
func (s *Servers) Crash() engine.Command {
	command := s.rule(fault.Crash, "make an API server die at once, or before an operation",
		`With a SERVER, or without one if there is only one, it dies now, as if its process had
ended: connections are reset, and its leases stay until they expire. "restart SERVER"
starts it again. To wait until a rule has crashed it, write: await fired crash POINT; to
wait for any other crash, write: await crash`,
		"crash apiserver-1\ncrash store/put resource=configmaps name=default/a",
		func(ctx context.Context, args []string) error {
			server, err := s.Server(args)
			if err != nil {
				return err
			}
			return server.Crash(ctx)
		})
	command.Args = "[SERVER] | " + command.Args
	return command
}
