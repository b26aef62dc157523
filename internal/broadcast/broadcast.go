// Package broadcast owns the news that something has changed, for all who wait for it. It
// never says what: who hears it looks again.
package broadcast

import (
	"context"
	"sync"
)

// News is told of changes. Its zero value is ready. What waits for it only waits for a
// channel, so virtual time passes meanwhile.
type News struct {
	mu   sync.Mutex
	next chan struct{} // nil until a goroutine waits
}

// Next returns what is closed at the next change. Take it before looking, so that no
// change is missed in between.
func (n *News) Next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

// Await looks again at every change until it is done. If ctx ends first, the error is why it
// has.
func (n *News) Await(ctx context.Context, done func() bool) error {
	for {
		next := n.Next()
		if done() {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Tell tells all who wait that something has changed.
func (n *News) Tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}
