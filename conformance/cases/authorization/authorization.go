// Package authorization has the cases about who may do what: RBAC, the Node and webhook
// authorizers, reviews and impersonation. An authorizer hears of a new rule through informers, so
// cases ask a SubjectAccessReview until it knows, and only then judge requests.
package authorization

import "slices"

// Cases are the cases of this area.
var Cases = slices.Concat(ruleCases, grantCases, reviewCases, impersonationCases, nodeCases, webhookCases,
	configuredCases)
