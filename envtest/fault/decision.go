package fault

import "fmt"

// Decision is what becomes of an operation. The zero value is to let it pass.
// It is small, because every operation gets one.
type Decision struct {
	// Kind is Pass, or what is to be done. At has waited out what says
	// when, so it is none of Hold, Delay and Freeze.
	Kind  ActionKind
	entry *Entry
	op    *Operation
}

// Err is the real error behind the action's With, as a client in the process
// sees it: of etcd's client for the store, a Status or a broken connection for
// HTTP, a net.OpError for dialing. It is nil for actions without an error.
func (d Decision) Err() error {
	if d.Kind != Fail && d.Kind != LoseReply {
		return nil
	}
	action := d.entry.rule.Action
	if action.With == "" {
		action.With = broken(d.op.Point)
	}
	err := action.With.err(*d.op, action.RetryAfter)
	if action.With == PlainError {
		return fmt.Errorf("%w, because of the rule %q", err, d.entry.rule) // it is for people
	}
	return err
}

// Operation is the operation, with its occurrence; the zero value if it passes.
func (d Decision) Operation() Operation {
	if d.op == nil {
		return Operation{}
	}
	return *d.op
}

// Rule is the rule that decided; the zero value if the operation passes.
func (d Decision) Rule() Rule {
	if d.entry == nil {
		return Rule{}
	}
	return d.entry.rule
}
