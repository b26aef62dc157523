package envtest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/component"
)

// components numbers them, for their names in the process.
var components atomic.Int64

// NewComponent makes a component of the control plane. crash is called with whatever would
// have ended its process, and must not block. Do and Go run a function as part of the
// component; when all of them have ended, which Wait waits for, the caller calls Leave.
func (cp *ControlPlane) NewComponent(name string, crash func(error)) (*component.Component, error) {
	trusted, err := cp.trusted()
	if err != nil {
		return nil, err
	}
	client := newClient(cp, cp.componentNames.take(name), nil)
	return component.Join(fmt.Sprintf("%s-%s-%d", cp.name, name, components.Add(1)), component.Host{
		Name:   client.name,
		Config: func(user string, groups ...string) *rest.Config { return client.Config(User(user, groups...)) },
		Cut:    client.cut, CA: trusted, ServiceAccountKey: cp.accountKey,
		Flags: cp.first().newest.flags.Process(), Log: cp.log, Trace: cp.recorder,
		Left: func() { cp.componentNames.giveBack(client.name) },
	}, crash)
}

// takenNames are names of which each is used once at a time. The zero value has none.
type takenNames struct {
	mu    sync.Mutex
	taken map[string]bool
}

// take returns a name that no component has: the wanted one, or that with a number.
func (n *takenNames) take(wanted string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := wanted
	for i := 2; n.taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", wanted, i)
	}
	if n.taken == nil {
		n.taken = map[string]bool{}
	}
	n.taken[name] = true
	return name
}

// any reports whether a component has a name.
func (n *takenNames) any() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.taken) > 0
}

func (n *takenNames) giveBack(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.taken, name)
}
