package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Clients has a share of the watchers of a load that another process measures, which has started
// this one as one of its WatchOptions.ClientProcesses: that process says on in what to do, and
// reads the answers from out. Progress is for people.
func Clients(ctx context.Context, in io.Reader, out, progress io.Writer) error {
	lines := bufio.NewReader(in)
	request, err := readRequest(ctx, lines)
	if err != nil {
		return fmt.Errorf("bench clients: what to watch is not known: %w; a measurement with --client-process starts this command", err)
	}
	request.Options.Progress = progress
	l := newLoad(request.Options, asGuest(reachedBy(request.Servers), request.Namespaces))
	l.firstWatcher, l.ownWatchers, l.from = request.First, request.Count, request.From
	g := &guest{load: l, out: json.NewEncoder(out), begin: make(chan time.Time, 1), end: make(chan struct{})}
	var ended context.CancelCauseFunc
	ctx, ended = context.WithCancelCause(ctx)
	defer ended(nil)
	go g.listen(lines, ended)
	if err := g.run(ctx); err != nil {
		return errors.Join(fmt.Errorf("bench clients: %w", err), g.say(clientsAnswer{Error: err.Error()}))
	}
	return nil
}

// readRequest reads the first line.
func readRequest(ctx context.Context, lines *bufio.Reader) (request clientsRequest, err error) {
	read := make(chan error, 1)
	go func() {
		line, err := lines.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &request)
		}
		read <- err
	}()
	select {
	case err := <-read:
		return request, err
	case <-ctx.Done(): // a read from a quiet parent can't be interrupted
		return clientsRequest{}, context.Cause(ctx)
	}
}

// guest is the part of a load that is in another process than its writers.
type guest struct {
	*load
	saying sync.Mutex
	out    *json.Encoder
	begin  chan time.Time // the zero of the load's clock
	end    chan struct{}  // closed when the result is asked for
	expire context.CancelCauseFunc
}

func (g *guest) say(answer clientsAnswer) error {
	g.saying.Lock()
	defer g.saying.Unlock()
	return g.out.Encode(answer)
}

// listen does what it is told, until the measurement has ended.
func (g *guest) listen(lines *bufio.Reader, ended context.CancelCauseFunc) {
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			ended(fmt.Errorf("the measurement has ended: %w", err))
			return
		}
		var zero int64
		switch words := strings.TrimSpace(line); {
		case words == toldClock:
			err = g.say(clientsAnswer{Clock: time.Now().UnixNano()})
		case words == toldDrain:
			time.AfterFunc(g.opts.Drain, func() { g.expire(errDrainTimeout) })
		case words == toldEnd:
			close(g.end)
		default:
			if _, err = fmt.Sscanf(words, toldBegin+" %d", &zero); err == nil {
				now := time.Now()
				g.begin <- now.Add(time.Duration(zero - now.UnixNano()))
			}
		}
		if err != nil {
			ended(fmt.Errorf("asked for %q: %w", line, err))
			return
		}
	}
}

// run opens the watches, follows them, and says what they got.
func (g *guest) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, g.close(ctx)) }()
	following, expire := context.WithCancelCause(ctx)
	defer expire(nil)
	g.expire = expire
	if _, err := g.on.prepare(ctx); err != nil {
		return err
	}
	if err := g.openWatches(ctx); err != nil {
		return err
	}
	if err := g.say(clientsAnswer{Open: true}); err != nil {
		return err
	}
	select {
	case g.begun = <-g.begin:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := g.follow(following); err != nil {
		return err
	}
	if err := g.say(clientsAnswer{Ended: true}); err != nil {
		return err
	}
	select {
	case <-g.end:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	got := g.share()
	got.TimedOut, got.Opening, got.Delivery = g.timedOut, g.opening.Export(), g.delivery.Export()
	return g.say(clientsAnswer{Share: &got})
}

// follow reads until all watchers have the last event, or the drain timeout expires.
func (g *guest) follow(ctx context.Context) error {
	work, followed := errgroup.WithContext(ctx)
	for _, w := range g.watchers {
		work.Go(func() error { return w.follow(followed) })
	}
	err := work.Wait()
	if g.timedOut = err != nil && errors.Is(context.Cause(ctx), errDrainTimeout); g.timedOut {
		return nil
	}
	return err
}
