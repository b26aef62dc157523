package server

import (
	"fmt"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/session"
)

// rule is a rule that the test has put in force.
type rule struct {
	fired  func() int
	remove func()
	gate   *fault.Gate // of a rule that makes operations wait, else nil
}

// Inject puts a rule in force.
func (c *controlPlane) Inject(text *string, id *session.ID) error {
	cp, err := c.alter()
	if err != nil {
		return err
	}
	entry, err := cp.Faults().Inject(*text)
	if err != nil {
		return err
	}
	*id = c.keep(&rule{entry.Fired, entry.Remove, entry.Gate()})
	return nil
}

// Gate makes operations wait.
func (c *controlPlane) Gate(match *string, id *session.ID) error {
	cp, err := c.alter()
	if err != nil {
		return err
	}
	entry, err := cp.Faults().Inject("hold " + *match)
	if err != nil {
		return fmt.Errorf("gate %q: %w", *match, err)
	}
	*id = c.keep(&rule{entry.Fired, entry.Remove, entry.Gate()})
	return nil
}

// alter is get, after which no other test gets the control plane.
func (c *controlPlane) alter() (*envtest.ControlPlane, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		return nil, errNotStarted
	}
	c.altered = true
	return c.running, nil
}

func (c *controlPlane) keep(r *rule) session.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	if c.rules == nil {
		c.rules = map[session.ID]*rule{}
	}
	c.rules[c.last] = r
	return c.last
}

// rule returns a rule of this connection.
func (c *controlPlane) rule(id session.ID) (*rule, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.rules[id]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("there is no rule %d", id)
}

// Fired is how often a rule has fired.
func (c *controlPlane) Fired(id *session.ID, times *int) error {
	r, err := c.rule(*id)
	if err != nil {
		return err
	}
	*times = r.fired()
	return nil
}

// Remove ends a rule.
func (c *controlPlane) Remove(id *session.ID, _ *session.None) error {
	r, err := c.rule(*id)
	if err != nil {
		return err
	}
	r.remove()
	return nil
}

// Await answers once enough operations wait at a gate.
func (c *controlPlane) Await(awaited *session.Awaited, waiting *[]string) error {
	r, err := c.rule(awaited.Rule)
	if err != nil {
		return err
	}
	operations, err := r.gate.Await(c.ctx, awaited.N)
	*waiting = texts(operations)
	return err
}

// Open lets go what waits at a gate.
func (c *controlPlane) Open(id *session.ID, _ *session.None) error {
	r, err := c.rule(*id)
	if err != nil {
		return err
	}
	r.gate.Open()
	return nil
}

func texts(operations []fault.Operation) []string {
	texts := make([]string, len(operations))
	for i, op := range operations {
		texts[i] = op.String()
	}
	return texts
}
