package scenarios

import (
	"context"
)

var signalCommand = command{
	name:  "signal",
	args:  "SIGNAL [SERVER]",
	least: 1, most: 2,
	summary: "fire a lifecycle signal of an API server before its time",
	details: `It takes away the protection that the signal gives, so it belongs in a mutation: for
example, an unknown path is answered with 503 until MuxAndDiscoveryComplete, and with 404
after it.
To wait for a signal, write: await signal SIGNAL`,
	example:  "signal MuxAndDiscoveryComplete",
	onServer: true,
	run: func(_ context.Context, s *session, args []string) error {
		server, err := s.serverOf(args[1:])
		if err != nil {
			return err
		}
		return server.FireSignal(args[0])
	},
}
