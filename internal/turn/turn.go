// Package turn owns the lock of what takes time: who waits for it waits for a channel, so
// that virtual time passes meanwhile, as it does not for a mutex, and can give up.
package turn

import "context"

// Lock is held by one at a time. Make it with New.
type Lock chan struct{}

// New returns a lock that is free.
func New() Lock { return make(Lock, 1) }

// Take waits for the lock. If ctx ends first, the error is why it has.
func (l Lock) Take(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Give gives the lock back.
func (l Lock) Give() { <-l }
