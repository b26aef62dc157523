package fault

import (
	"context"
	"time"
)

// OnFire calls fire when a rule says that a signal is to fire: By after this call, or at
// once if that is over. None of the calls waits for what the signal waits for, and each is
// as those of OnPartition are. They end with life.
func (s *Set) OnFire(life context.Context, signal Operation, fire func()) {
	s.observe(life, &observer{kind: Fire, path: signal, since: time.Now(), tell: func(now bool) {
		if now {
			fire()
		}
	}})
}
