// Package admission has the cases about what is asked, changed and refused between the
// authorization of a request and the store: webhooks, policies and built-in plugins. Webhooks of the
// tests answer at a host that only the case's control plane can reach, and keep what they are asked.
package admission

import "slices"

// Cases are the cases of this area.
var Cases = slices.Concat(webhookCases, sickWebhookCases, policyCases, expressionCases, namespaceCases, podCases,
	permissionCases)
