package scenarios

import (
	"context"
	"errors"
	"fmt"
)

var shutdownCommand = command{
	name:    "shutdown",
	summary: "stop the API server gracefully; the store keeps its content",
	details: `It fails if the server has crashed, unless "crash" has confirmed that, and if any
part of the server does not stop.`,
	example:   "shutdown",
	unbounded: true,
	onServer:  true,
	run:       func(ctx context.Context, s *session, _ []string) error { return s.stop(ctx) },
}

func (s *session) stop(ctx context.Context) error {
	server := s.server
	s.server, s.identity = nil, nil
	err := server.Stop(ctx)
	s.serverLog = server.Log()
	s.noteFired(server)
	if crash := server.Err(); crash != nil && !s.excused {
		err = errors.Join(fmt.Errorf("the API server crashed: %w", crash), err)
	}
	return err
}
