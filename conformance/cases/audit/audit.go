// Package audit has the cases about what a server tells an audit backend of the requests that it
// serves. The backend is a webhook of the tests. It blocks requests until it has their events, so
// that what is not told when a request is answered never will be.
package audit

import "slices"

// Cases are the cases of this area.
var Cases = slices.Concat(policyCases, eventCases, backendCases)
