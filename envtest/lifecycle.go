package envtest

import (
	"context"
	"errors"
	"fmt"

	"snowglobe.test/envtest/process"
)

var (
	errNotRunning = errors.New("it does not run; Restart it")
	errRunning    = errors.New("it is running; Crash it or Stop it first")
	errOnPurpose  = errors.New("on purpose")
)

// Crash ends the server as the end of its process would. When it returns, its
// clients' connections have been reset, and nothing more from it reaches the store:
// its leases stay until they expire. A deliberate crash is not a failure of the
// control plane, so Err does not report it. Crash does nothing if the server is not
// running. If ctx ends first, the error says what may still reach the store.
func (s *Server) Crash(ctx context.Context) error {
	if i := s.current.Load(); i != nil {
		if err := i.crash(ctx); err != nil {
			return fmt.Errorf("crash %s: %w", s.name, err)
		}
	}
	return nil
}

// Stop ends the server gracefully, as SIGTERM would, and joins it: the server gives
// back its leases and leaves the endpoints of the kubernetes Service. A crashed server
// is only joined. Restart starts it again.
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
	defer s.turn.Give()
	if s.newest == nil {
		return nil
	}
	return s.newest.release(ctx)
}

// Restart starts a crashed or stopped server under its old name, identity and
// address, once nothing is left of its last run. It returns when the server is
// ready or, if a rule holds part of its start, when it accepts requests.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.cp.cfg.timeouts.within(ctx, "a start", s.restart); err != nil {
		return fmt.Errorf("restart %s: %w", s.name, err)
	}
	return nil
}

func (s *Server) restart(ctx context.Context) error {
	ctx, forget := s.cp.untilStop(ctx)
	defer forget()
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.turn.Give()
	switch {
	case s.cp.stopping.Err() != nil:
		return errStopped
	case s.newest.running():
		return errRunning
	}
	if err := s.newest.release(ctx); err != nil {
		return fmt.Errorf("its last run has not ended: %w", err)
	}
	if err := s.prepare(); err != nil {
		return err
	}
	err := s.boot(ctx)
	if err != nil {
		ending, cancel := s.cp.cfg.timeouts.boundStop(context.WithoutCancel(ctx))
		defer cancel()
		err = errors.Join(err, s.newest.release(ending))
	}
	return err
}

func (s *Server) takeTurn(ctx context.Context) error {
	if err := s.turn.Take(ctx); err != nil {
		return fmt.Errorf("it is being started or stopped: %w%s", err, s.atWork())
	}
	return nil
}

// atWork is the end of an error about a server that does not end: it lists the server's
// goroutines, since one of them is the reason.
func (s *Server) atWork() string {
	count, report := process.Left(s.memberName())
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("; its goroutines are at work (%d in all):\n%s", count, report)
}

// memberName is the name of the server as a process.Member, which labels its goroutines.
func (s *Server) memberName() string { return s.cp.name + "-" + s.name }

// prepare makes the next instance; the first one decides the server's address.
func (s *Server) prepare() error {
	i, err := newInstance(s)
	if err != nil {
		return err
	}
	s.newest = i
	s.boots++
	if s.addr == nil {
		s.addr, s.hasPort = i.endpoint.Addr(), i.endpoint.HasPort()
	}
	return nil
}

// address is where the server listens: config.address at first, and after a restart the port
// that the first run got, so that clients find the server again.
func (s *Server) address() string {
	if s.hasPort {
		return s.addr.String()
	}
	return s.cp.cfg.address()
}

// boot starts the prepared instance and waits until it is ready or, if something is
// held, accepts requests. If it fails, release gives back what it took.
func (s *Server) boot(ctx context.Context) error {
	if err := s.newest.start(ctx); err != nil {
		return err
	}
	return s.newest.waitStarted(ctx)
}
