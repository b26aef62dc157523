package server

import (
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/session"
)

// alter returns the control plane, and marks it as altered: no other test will get it.
func (c *controlPlane) alter() (*envtest.ControlPlane, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		return nil, errNotStarted
	}
	c.altered = true
	return c.running, nil
}

// Inject puts a rule in force.
func (c *controlPlane) Inject(text *string, id *session.ID) error {
	cp, err := c.alter()
	if err != nil {
		return err
	}
	entry, err := cp.Faults().Inject(*text)
	return c.keep(id, entry, err)
}

// Gate returns the gate at which matching operations wait, and adds its rule if there is none.
func (c *controlPlane) Gate(match *string, id *session.ID) error {
	cp, err := c.alter()
	if err != nil {
		return err
	}
	gate, err := cp.Faults().Gate(*match)
	return c.keep(id, gate, err)
}

// Fired is how often a rule has fired.
func (c *controlPlane) Fired(id *session.ID, times *int) error {
	return find(c, *id, func(entry *fault.Entry) error {
		*times = entry.Fired()
		return nil
	})
}

// Remove ends a rule, or that of a gate.
func (c *controlPlane) Remove(id *session.ID, _ *session.None) error {
	return find(c, *id, func(rule interface{ Remove() }) error {
		rule.Remove()
		return nil
	})
}

// Await answers once enough operations wait at a gate.
func (c *controlPlane) Await(awaited *session.Awaited, waiting *[]string) error {
	return find(c, awaited.Gate, func(gate *fault.Gate) error {
		operations, err := gate.Await(c.ctx, awaited.N)
		*waiting = texts(operations)
		return err
	})
}

// Open lets go what waits at a gate.
func (c *controlPlane) Open(id *session.ID, _ *session.None) error {
	return find(c, *id, func(gate *fault.Gate) error {
		gate.Open()
		return nil
	})
}

func texts(operations []fault.Operation) []string {
	texts := make([]string, len(operations))
	for i, op := range operations {
		texts[i] = op.String()
	}
	return texts
}
