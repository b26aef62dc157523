package seeds

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"sync"

	"snowglobe.test/internal/conns"
	"snowglobe.test/internal/unixsocket"
)

// Result is what became of one seed in one package.
type Result struct {
	Package string   `json:"package"`
	Seed    uint64   `json:"seed"`
	Failed  bool     `json:"failed"`
	Seconds float64  `json:"seconds"`
	Tests   []string `json:"tests,omitempty"` // that failed
	// NotRunnable are tests that can't run in a bubble, each with the reason, in words.
	NotRunnable []string `json:"notRunnable,omitempty"`
	// Alone says that the first of them fails as well if nothing else runs in its process.
	Alone bool `json:"alone,omitempty"`
	// Repeat is the command that runs it again. Whoever makes the Search fills it in.
	Repeat string `json:"repeat,omitempty"`
}

// report is what Run tells a Search.
type report struct {
	Result
	Enough bool // no further seed shall run
}

// Search lets Run, in several processes, run as many seeds at a time as there are processors.
type Search struct {
	listener  net.Listener
	conns     conns.Set
	turns     chan struct{}   // a token for each that runs
	enough    <-chan struct{} // closed by stop: no further seed shall run
	stop      context.CancelFunc
	onResult  func(Result)
	accepting sync.WaitGroup
	serving   sync.WaitGroup
	mu        sync.Mutex // held for one result at a time
}

// Begin starts a search. Its socket is in a folder that only the user may enter. onResult is
// called for one result at a time.
func Begin(ctx context.Context, folder string, parallel int, onResult func(Result)) (*Search, error) {
	listener, err := unixsocket.Listen(ctx, filepath.Join(folder, "s"))
	if err != nil {
		return nil, err
	}
	until, stop := context.WithCancel(context.Background())
	s := &Search{turns: make(chan struct{}, parallel), enough: until.Done(), stop: stop, onResult: onResult}
	s.listener = s.conns.Keep(listener)
	s.accepting.Go(s.accept)
	return s, nil
}

// Socket is where Run finds the search.
func (s *Search) Socket() string { return s.listener.Addr().String() }

// End ends the search, with whoever still runs.
func (s *Search) End() {
	_ = s.listener.Close()
	s.stop()
	s.accepting.Wait() // no connection is added any more
	s.conns.CloseAll()
	s.serving.Wait()
}

func (s *Search) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.serving.Go(func() { s.serve(conn) })
	}
}

// serve gives one process one turn.
func (s *Search) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	select {
	case <-s.enough:
		return
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	}
	if _, err := conn.Write([]byte{turn}); err != nil {
		return
	}
	var r report
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return // it was ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onResult(r.Result)
	if r.Enough {
		s.stop()
	}
}

// turn is what a search says to whoever may run.
const turn = 't'
