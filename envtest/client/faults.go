package client

import (
	"context"

	"snowglobe.test/envtest/client/internal/session"
)

// Rule is a rule in force.
type Rule struct {
	of *ControlPlane
	id session.ID
}

// Inject puts a rule in force, such as "fail http/update resource=pods with=500 times=1".
func (cp *ControlPlane) Inject(ctx context.Context, rule string) (*Rule, error) {
	r := &Rule{of: cp}
	return r, cp.call(ctx, session.Inject, rule, &r.id)
}

// Fired returns how often the rule has fired.
func (r *Rule) Fired(ctx context.Context) (times int, err error) {
	err = r.of.call(ctx, session.Fired, r.id, &times)
	return times, err
}

// Remove ends the rule. What waits because of it goes on.
func (r *Rule) Remove(ctx context.Context) error {
	return r.of.call(ctx, session.Remove, r.id, &session.None{})
}

// Gate is where operations wait until it is opened.
type Gate struct {
	of *ControlPlane
	id session.ID
}

// Gate makes the operations wait that match, such as "store/put resource=configmaps
// name=default/a". If a rule "hold MATCH" of WithFaults makes them wait, it is the gate of that.
func (cp *ControlPlane) Gate(ctx context.Context, match string) (*Gate, error) {
	g := &Gate{of: cp}
	return g, cp.call(ctx, session.Gate, match, &g.id)
}

// Await returns the waiting operations once there are n of them.
func (g *Gate) Await(ctx context.Context, n int) ([]string, error) {
	var waiting []string
	if err := g.of.await(ctx, session.Await, session.Awaited{Gate: g.id, N: n}, &waiting); err != nil {
		return nil, err
	}
	return waiting, nil
}

// Open lets all that wait go, and all that come.
func (g *Gate) Open(ctx context.Context) error {
	return g.of.call(ctx, session.Open, g.id, &session.None{})
}

// Remove ends the gate. What waits at it goes on.
func (g *Gate) Remove(ctx context.Context) error {
	return g.of.call(ctx, session.Remove, g.id, &session.None{})
}
