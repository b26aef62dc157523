// Package checks owns the commands that judge: single answers, objects, and everything that
// clients were told. They change nothing.
package checks

import (
	"time"

	"snowglobe.test/scenarios/commands/clients"
	"snowglobe.test/scenarios/engine"
)

// Checks are those of one run.
type Checks struct {
	run     *engine.Run
	clients *clients.Clients
	// Spent is how long checking histories took.
	Spent time.Duration
}

// New returns checks that ask by some clients.
func New(run *engine.Run, by *clients.Clients) *Checks { return &Checks{run: run, clients: by} }
