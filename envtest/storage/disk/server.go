package disk

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"

	"snowglobe.test/internal/diskerr"
	"snowglobe.test/internal/left"
)

// Config of a Server.
type Config struct {
	Etcd *embed.Config
	// Serving is called when clients may call, Ending when a hard end begins, after which
	// they may not. Each is called once at most; either may be nil.
	Serving, Ending func()
}

// Server is an etcd in this process that does not take the process with it when its disk
// fails. etcd logs such a failure as fatal, which ends the process, and relies on nothing
// being done after that. Here the goroutine that failed has to wait until etcd stops, or, if
// it holds locks of the database, the database takes no more writes; and etcd is stopped as by
// a power cut.
type Server struct {
	cfg   Config
	calls calls

	begun    chan struct{} // closed when embed.StartEtcd has returned, or its goroutine ended
	etcd     *embed.Etcd   // after begun; nil if it did not start
	startErr error         // after begun

	failOnce sync.Once
	failed   chan struct{} // closed when etcd can't go on
	failure  error

	endOnce sync.Once
	ending  chan struct{} // closed when it is to end
	hard    bool          // after ending
	ended   chan struct{} // closed when nothing of it is left
}

// Start starts an etcd, and returns when it has begun to look for its leader. If ctx ends
// first, the etcd ends in the background. Whatever Start returns, End it.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	s := &Server{
		cfg: cfg, calls: calls{serving: cfg.Serving}, begun: make(chan struct{}), failed: make(chan struct{}),
		ending: make(chan struct{}), ended: make(chan struct{}),
	}
	// What etcd has to say is in its errors; what concerns us is only how it ends.
	logger := zap.New(zapcore.NewNopCore(), zap.WithFatalHook(s), zap.WithPanicHook(s))
	cfg.Etcd.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	cfg.Etcd.ServiceRegister = s.calls.begin
	cfg.Etcd.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.WaitForHandlers(true)}
	go func() {
		defer close(s.begun)
		s.etcd, s.startErr = embed.StartEtcd(cfg.Etcd)
	}()
	go s.end()
	select {
	case <-s.begun:
	case <-s.failed:
	case <-ctx.Done():
		return s, context.Cause(ctx)
	}
	if err := s.Err(); err != nil {
		return s, err
	}
	if s.startErr != nil {
		return s, explain(cfg.Etcd.Dir, s.startErr)
	}
	return s, nil
}

// Etcd is the server, if it has started.
func (s *Server) Etcd() *embed.Etcd { return s.etcd }

// Failed returns a channel that is closed when etcd can't go on. It then ends by itself.
func (s *Server) Failed() <-chan struct{} { return s.failed }

// Err says why etcd can't go on, or returns nil.
func (s *Server) Err() error {
	select {
	case <-s.failed:
		return s.failure
	default:
		return nil
	}
}

// Ended returns a channel that is closed when nothing of the server is left.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// End begins to end the server: hard, as the end of its process would, or gracefully. It
// returns Ended.
func (s *Server) End(hard bool) <-chan struct{} {
	s.endOnce.Do(func() {
		s.hard = hard
		close(s.ending)
	})
	return s.ended
}

// AwaitEnd waits until an etcd has ended. If ctx ends first, the error says what has not ended, and
// which goroutines of etcds are left.
func AwaitEnd(ctx context.Context, ended <-chan struct{}, what string) error {
	return left.Await(ctx, ended, what, "go.etcd.io/etcd/server/", "go.etcd.io/raft/", "go.etcd.io/bbolt")
}

func (s *Server) end() {
	defer close(s.ended)
	select {
	case <-s.ending:
	case <-s.failed:
		s.End(true)
	}
	<-s.begun
	if s.etcd == nil {
		return
	}
	if s.hard || s.Err() != nil {
		// Calls first, or they would use a closed database. Then the server, as Close would
		// hand over leadership, and wait for one that never had a quorum.
		s.calls.end(s.cfg.Ending)
		s.etcd.Server.HardStop()
	}
	s.etcd.Close()
}

// OnWrite implements zapcore.CheckWriteHook: etcd has logged something fatal, or is about to
// panic. What it does after that was never meant to be done.
func (s *Server) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	stack := callers()
	s.failOnce.Do(func() {
		s.failure = s.describe(entry.Message, fields)
		close(s.failed)
	})
	if strings.Contains(stack, "embed.StartEtcd\n") {
		runtime.Goexit() // of what it has begun, nothing does anything yet
	}
	<-s.begun
	switch {
	case s.etcd == nil:
		runtime.Goexit()
	case strings.Contains(stack, "/storage/backend."):
		refuseWrites(s.etcd.Server.Backend())
	default:
		<-s.etcd.Server.StoppingNotify()
	}
}

// describe is the failure as a sentence.
func (s *Server) describe(message string, fields []zapcore.Field) error {
	for _, f := range fields {
		err, ok := f.Interface.(error)
		if !ok {
			continue
		}
		if explained, ok := diskerr.Explain(s.cfg.Etcd.Dir, err); ok {
			return fmt.Errorf("etcd can't write: %w", explained)
		}
		message += ": " + err.Error()
	}
	return fmt.Errorf("etcd in %q: %s", s.cfg.Etcd.Dir, message)
}

// callers lists the functions on the stack of this goroutine, each on a line.
func callers() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var all strings.Builder
	for {
		frame, more := frames.Next()
		all.WriteString(frame.Function + "\n")
		if !more {
			return all.String()
		}
	}
}
