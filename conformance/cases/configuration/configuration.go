// Package configuration has the cases about what a server is started with: flags, what they turn
// on and off, and what is refused before anything starts. A refusal is tried beside the same flags
// put right, so that it can have no other cause.
package configuration

import "slices"

// Cases are the cases of this area.
var Cases = slices.Concat(rangeCases, flagCases, refusedCases)
