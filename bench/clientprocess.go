package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/measure"
)

// clientProcess has a share of the watchers, perhaps on another machine. It is a command that runs
// Clients, which is told what to do by lines.
type clientProcess struct {
	command []string
	begin   chan time.Time // the zero of the load's clock, once
	opened  chan struct{}  // closed when its watches are open
	ended   chan struct{}  // closed when the process has ended, with err
	cancel  context.CancelFunc
	reply   io.Writer // set before opened

	pinged time.Time
	clock  *remoteClock // of the time before the load
	after  *remoteClock // and of the time after it
	share  *share
	failed string
	err    error
}

// clientsRequest asks a process for a share of the watchers of a load.
type clientsRequest struct {
	Options      WatchOptions
	Servers      []*access
	Namespaces   []string // of the load
	From         string   // resourceVersion that the watches start after
	First, Count int      // which watchers
}

// clientsAnswer is a line of such a process. Each but the last one has a line in return.
type clientsAnswer struct {
	Open  bool   `json:"open,omitempty"`  // the watches are open
	Clock int64  `json:"clock,omitempty"` // what its clock says, in nanoseconds
	Ended bool   `json:"ended,omitempty"` // all watchers have all events, or as many as come in time
	Share *share `json:"share,omitempty"` // what they got, which is the last line
	Error string `json:"error,omitempty"` // or why that is not known
}

// What such a process is told.
const (
	toldClock = "clock" // say what your clock says
	toldBegin = "begin" // with the zero of the load's clock, on yours, in nanoseconds
	toldDrain = "drain" // all is written
	toldEnd   = "end"   // say what your watchers got
)

// clientsCommand is what a client process does with the program.
var clientsCommand = []string{"bench", "clients"}

// startClients starts the client processes. The first watchers are in this one.
func (l *load) startClients(ctx context.Context) error {
	if len(l.opts.ClientProcesses) == 0 {
		return nil
	}
	server := l.on.(*apiServer)
	servers, err := server.accesses()
	if err != nil {
		return err
	}
	processes := len(l.opts.ClientProcesses) + 1
	bound := func(number int) int { return number * l.opts.Watchers / processes }
	for number, command := range l.opts.ClientProcesses {
		p := &clientProcess{
			command: append(strings.Fields(command), clientsCommand...), begin: make(chan time.Time, 1),
			opened: make(chan struct{}), ended: make(chan struct{}), clock: &remoteClock{}, after: &remoteClock{},
		}
		request := clientsRequest{
			Options: l.opts, Servers: servers, Namespaces: server.namespaces, From: l.from,
			First: bound(number + 1), Count: bound(number+2) - bound(number+1),
		}
		var life context.Context
		life, p.cancel = context.WithCancel(ctx)
		go func() {
			defer close(p.ended)
			p.err = p.converse(life, request)
		}()
		l.elsewhere = append(l.elsewhere, p)
	}
	return nil
}

func (p *clientProcess) converse(ctx context.Context, request clientsRequest) error {
	err := child.ConverseWith(ctx, p.command, request, request.Options.Progress, func(line []byte, reply io.Writer) error {
		return p.hear(ctx, line, reply)
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p.failed != "":
		return fmt.Errorf("%q: %s", p.command, p.failed)
	case err == nil && p.share == nil:
		return fmt.Errorf("%q ended without a result", p.command)
	}
	return err
}

// hear answers a line.
func (p *clientProcess) hear(ctx context.Context, line []byte, reply io.Writer) error {
	var answer clientsAnswer
	if err := json.Unmarshal(line, &answer); err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	asked := p.clock
	select {
	case <-p.opened:
		asked = p.after
	default:
	}
	switch {
	case answer.Open, answer.Ended:
		return p.ping(reply)
	case answer.Clock != 0 && asked.heard(p.pinged, time.Now(), answer.Clock):
		return p.ping(reply)
	case answer.Clock != 0 && asked == p.after:
		return order(reply, toldEnd)
	case answer.Clock != 0:
		p.reply = reply
		close(p.opened)
		select {
		case zero := <-p.begin:
			return order(reply, toldBegin, zero.Add(p.clock.offset).UnixNano())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	p.share, p.failed = answer.Share, answer.Error
	return nil
}

func (p *clientProcess) ping(reply io.Writer) error {
	p.pinged = time.Now()
	return order(reply, toldClock)
}

func order(to io.Writer, words ...any) error {
	_, err := fmt.Fprintln(to, words...)
	return err
}

// awaitOpen waits until the watches are open.
func (p *clientProcess) awaitOpen(progress io.Writer) error {
	select {
	case <-p.opened:
		fmt.Fprintf(progress, "%q watches, and its clock is known within %s\n", p.command, measure.Round(p.clock.within))
		return nil
	case <-p.ended:
		return p.err
	}
}

// drain says that all is written. A process that has ended says so itself.
func (p *clientProcess) drain() { _ = order(p.reply, toldDrain) }

// await waits for the result, also of a load whose drain timeout has expired; after another end
// there is none.
func (p *clientProcess) await(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
	}
	if !errors.Is(context.Cause(ctx), errDrainTimeout) {
		p.cancel()
	}
	<-p.ended
	return p.err
}

// close ends the process, if it has not.
func (p *clientProcess) close() {
	p.cancel()
	<-p.ended
}

// pings is how often a clock is asked: the fastest answer counts.
const pings = 16

// remoteClock is what is known of the clock of another process.
type remoteClock struct {
	offset time.Duration // to be added to ours
	within time.Duration // by how much that may be wrong
	pings  int
}

// heard takes an answer, which was given between two moments of ours. It reports whether to ask
// again.
func (c *remoteClock) heard(asked, answered time.Time, said int64) (again bool) {
	within := answered.Sub(asked) / 2
	if c.pings++; c.pings == 1 || within < c.within {
		c.within, c.offset = within, time.Unix(0, said).Sub(asked.Add(within).Round(0))
	}
	return c.pings < pings
}

// clockError is the largest of all processes: what may be wrong with an answer, and how far the
// clock has gone astray since.
func (l *load) clockError() (most time.Duration) {
	for _, p := range l.elsewhere {
		most = max(most, max(p.clock.within, p.after.within)+(p.after.offset-p.clock.offset).Abs())
	}
	return most
}

// validateClients refuses what client processes can't do.
func (o WatchOptions) validateClients() error {
	switch {
	case len(o.ClientProcesses) == 0:
		return nil
	case o.Target == nil && o.Transport != TransportTLS:
		return fmt.Errorf("transport %s: client processes are others than the server's; use %s, or a cluster", o.Transport, TransportTLS)
	case o.Floors:
		return errors.New("client processes are for API servers: leave out either them or the floors")
	case o.Slow > 0 || o.Stalled > 0:
		return errors.New("laggards are watchers of one process: leave out either them or the client processes")
	case o.Watchers <= len(o.ClientProcesses):
		return fmt.Errorf("%d watchers are too few for %d client processes and this one", o.Watchers, len(o.ClientProcesses))
	}
	for _, command := range o.ClientProcesses {
		if strings.TrimSpace(command) == "" {
			return errors.New("a client process needs a command that runs this program, like 'ssh node snowglobe'")
		}
	}
	return nil
}
