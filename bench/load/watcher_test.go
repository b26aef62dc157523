package load

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/bench/wire"
)

// TestIdleRestarts counts the watches that end without an event, and not those that bring some of
// the warm-up: a watcher that is too slow goes on for as long as it gets on.
func TestIdleRestarts(t *testing.T) {
	server := &impatient{warmUps: 20}
	load := newLoad(Options{Shape: Shape{Watchers: 3, Writers: 2}}.WithDefaults(), func(l *Load) Backend {
		server.load = l
		return server
	})
	w := &watcher{load: load, tally: newTally(load.numbering, 0)}
	assert.NoError(t, w.open(t.Context()))
	err := w.receive(t.Context())
	assert.EqualError(t, err, "watcher 1: the server ended the watch 10 times in a row without an event")
	assert.Equal(t, 20+maxIdleRestarts, w.restarts)
}

// impatient is a server that ends each watch after one event of the warm-up, and then without one.
type impatient struct {
	Backend // of which only watch is called
	load    *Load
	warmUps int
}

func (i *impatient) Watch(context.Context, int, int, string) (Stream, error) {
	brief := &brief{number: i.load.warmUpNumber()}
	if i.warmUps > 0 {
		brief.version = strconv.Itoa(i.warmUps)
		i.warmUps--
	}
	return brief, nil
}

// brief is a watch with one event, unless it has no version.
type brief struct {
	number  int
	version string
}

func (b *brief) Receive(_ context.Context, each func(wire.Stamp, time.Duration) (bool, error)) (bool, error) {
	if b.version == "" {
		return false, nil
	}
	return each(wire.Stamp{Number: b.number}, 0)
}

func (b *brief) Newest() (string, error) { return b.version, nil }

func (b *brief) Stop() {}
