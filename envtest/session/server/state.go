package server

import (
	"fmt"
	"slices"
	"strings"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/session"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/serverlog"
)

// Snapshot keeps the state of the store.
func (c *controlPlane) Snapshot(_ *session.None, id *session.ID) error {
	return c.with(func(cp *envtest.ControlPlane) error {
		snapshot, err := cp.Snapshot(c.ctx)
		return c.keep(id, snapshot, err)
	})
}

// Restore brings back a state that was kept.
func (c *controlPlane) Restore(id *session.ID, _ *session.None) error {
	return c.with(func(cp *envtest.ControlPlane) error {
		return find(c, *id, func(to *envtest.Snapshot) error { return cp.Restore(c.ctx, to) })
	})
}

// Reset brings back the state of right after boot.
func (c *controlPlane) Reset(*session.None, *session.None) error {
	return c.with(func(cp *envtest.ControlPlane) error { return cp.Reset(c.ctx) })
}

// Compact discards old revisions.
func (c *controlPlane) Compact(*session.None, *session.None) error {
	return c.with(func(cp *envtest.ControlPlane) error { return cp.Compact(c.ctx) })
}

// Settle answers when the server has nothing more to do.
func (c *controlPlane) Settle(_ *session.None, settled *session.Settled) error {
	return c.with(func(cp *envtest.ControlPlane) error {
		s, err := cp.Settle(c.ctx)
		*settled = session.Settled{Revision: s.Revision, Held: texts(s.Held)}
		return err
	})
}

// Trace is what has happened since this test has the control plane.
func (c *controlPlane) Trace(form *session.Form, text *string) error {
	return c.with(func(cp *envtest.ControlPlane) (err error) {
		records := slices.DeleteFunc(cp.Trace().Records(), func(r trace.Record) bool { return r.Seq <= c.since })
		var out strings.Builder
		switch *form {
		case session.Text:
			err = trace.WriteText(&out, records, trace.TextOptions{})
		case session.JSON:
			err = trace.WriteJSON(&out, records)
		default:
			err = fmt.Errorf("%q is no form of a trace", *form)
		}
		*text = out.String()
		return err
	})
}

// Log is the log of the API server.
func (c *controlPlane) Log(_ *session.None, log *string) error {
	return c.with(func(cp *envtest.ControlPlane) error {
		*log = cp.Log()
		return nil
	})
}

// Problems are the warnings and errors in the log.
func (c *controlPlane) Problems(_ *session.None, problems *string) error {
	return c.with(func(cp *envtest.ControlPlane) error {
		*problems = serverlog.Problems(cp.Log())
		return nil
	})
}
