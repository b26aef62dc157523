package kubelet

import (
	"context"
	"errors"
	"time"

	"snowglobe.test/internal/broadcast"
)

// Session is the record of something that lasted: logs that were sent, a process, or
// one connection of a port-forward.
type Session struct {
	Request  Request
	Protocol string // such as "v5.channel.k8s.io", "" for logs and run
	Port     int    // of a port-forward
	Began    time.Time
	Ended    time.Time // zero while it lasts
	ExitCode int       // of a process that has ended
	Err      error     // why it ended, nil if as it should
}

// errNoReturn is how a session ends whose function panics, or ends its goroutine as
// t.FailNow does.
var errNoReturn = errors.New("the function of the test has not returned")

// Sessions returns all sessions so far, in the order in which they began.
func (k *Kubelet) Sessions() []Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	sessions := make([]Session, len(k.sessions))
	for i, s := range k.sessions {
		sessions[i] = *s
	}
	return sessions
}

// AwaitSessions returns the sessions so far as soon as so many have ended. If the
// context ends first, it returns what there is and the reason.
func (k *Kubelet) AwaitSessions(ctx context.Context, ended int) ([]Session, error) {
	done := func(s Session) bool { return !s.Ended.IsZero() }
	return broadcast.AwaitRecords(ctx, &k.changed, k.Sessions, done, ended, "sessions have ended")
}

func (k *Kubelet) begin(request Request, protocol string, port int) *Session {
	s := &Session{Request: request, Protocol: protocol, Port: port, Began: time.Now()}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions = append(k.sessions, s)
	return s
}

func (k *Kubelet) end(s *Session, exitCode int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Ended, s.ExitCode, s.Err = time.Now(), exitCode, err
	k.changed.Tell()
}
