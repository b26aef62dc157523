// Package authorization owns the cases about who may do what: RBAC, the Node and webhook
// authorizers, reviews and impersonation. It never runs them.
package authorization

import "slices"

// Cases are the cases of this area.
var Cases = slices.Concat(ruleCases, grantCases, reviewCases, impersonationCases, nodeCases, webhookCases,
	configuredCases)
