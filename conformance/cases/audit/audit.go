// Package audit owns the cases about what a server tells an audit backend of the requests that
// it serves. It never runs them.
package audit

import "slices"

// Cases are the cases of this area.
var Cases = slices.Concat(policyCases, eventCases, backendCases)
