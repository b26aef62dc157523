package envtest

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotRunning is in the error of what needs a server that runs, when it has
// crashed on purpose or was stopped.
var ErrNotRunning = errors.New("it does not run; Restart it")

var errRunning = errors.New("it is running; Crash it or Stop it first")

// Crash ends the server as the end of its process would. When it returns no
// request of its clients is in flight any more, their connections having been
// reset, and nothing more of it reaches the store: its leases stay until they
// expire. It is no failure: Crashed and Err are about those nobody asked for. A
// server that does not run is left alone. Restart starts it again.
func (s *Server) Crash() {
	if l := s.life.Load(); l != nil {
		l.crash(errors.New("on purpose"))
	}
}

// Stop ends the server gracefully, as SIGTERM would, and joins it: it gives its
// leases back, and is no longer among the endpoints of the kubernetes service. A
// server that has crashed is joined. Restart starts it again.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.stop(ctx); err != nil {
		return fmt.Errorf("stop %s: %w", s.name, err)
	}
	return nil
}

func (s *Server) stop(ctx context.Context) error {
	ctx, cancel := s.cp.cfg.timeouts.boundStop(ctx)
	defer cancel()
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.endTurn()
	if s.newest != nil {
		return s.newest.release(ctx)
	}
	if s.listener != nil {
		s.listener.end()
	}
	return nil
}

// Restart starts a server that has crashed or was stopped, under its old name,
// identity and address, once nothing is left of what it was. It returns when
// the server is ready or, if something is held from the start, when it accepts
// requests.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.restart(ctx); err != nil {
		return fmt.Errorf("restart %s: %w", s.name, err)
	}
	return nil
}

func (s *Server) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cp.cfg.timeouts.start)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.cp.stopping, func() { end(errStopped) })()
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.endTurn()
	switch {
	case s.cp.stopping.Err() != nil:
		return errStopped
	case s.newest.running():
		return errRunning
	}
	if err := s.newest.release(ctx); err != nil {
		return fmt.Errorf("what it was has not ended: %w", err)
	}
	if err := s.listen(); err != nil {
		return err
	}
	err := s.boot(ctx)
	if err != nil {
		err = errors.Join(err, s.newest.release(context.WithoutCancel(ctx)))
	}
	return err
}

func (s *Server) takeTurn(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("it is being started or stopped: %w", context.Cause(ctx))
	}
}

func (s *Server) endTurn() { <-s.turn }

// listen makes the listener of the next life, where the last one was.
func (s *Server) listen() error {
	address := s.cp.cfg.address()
	if s.hasPort {
		address = s.addr.String()
	}
	l, err := listen(address)
	if err != nil {
		return err
	}
	s.listener = l
	if s.addr == nil {
		s.addr, s.hasPort = l.addr, l.hasPort()
	}
	return nil
}

// boot starts the server and waits until it is ready or, when something is held,
// until it accepts requests. What it has taken when it fails, the release of the
// newest life gives back.
func (s *Server) boot(ctx context.Context) error {
	s.HealStore()
	l, err := newLife(s)
	if err != nil {
		return err
	}
	s.newest = l
	if err := l.start(ctx); err != nil {
		return err
	}
	return l.waitStarted(ctx)
}
