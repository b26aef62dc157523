package fault

import (
	"context"
	"time"
)

// OnFire calls fire when a rule says that a signal of the server is to fire: By after this
// call, or at once if that is over. None of the calls waits for what the signal waits for, and
// each is as those of Set.OnPartition are. They end with the Injector.
func (i *Injector) OnFire(signal Operation, fire func()) {
	if i == nil {
		return
	}
	signal.Server = i.server
	o := i.set.observe(&observer{kind: Fire, path: signal, since: time.Now(), tell: func(now bool) {
		if now {
			fire()
		}
	}})
	context.AfterFunc(i.life, func() { i.set.forget(o, false) })
}
