// Package admission owns the cases about what is asked, changed and refused between the
// authorization of a request and the store: webhooks, policies and built-in plugins. It never
// runs them.
package admission

import "slices"

// Cases are the cases of this area.
var Cases = slices.Concat(webhookCases, sickWebhookCases, policyCases, expressionCases, namespaceCases, podCases,
	permissionCases)
