// Package configuration owns the cases about what a server is started with: its flags, and
// what they turn on and off. It never runs them.
package configuration

import "slices"

// Cases are the cases of this area.
var Cases = slices.Concat(rangeCases, flagCases, refusedCases)
