// Package admission has the cases about admission, which may change or refuse a request after its
// authorization: webhooks, policies and built-in plugins. Webhooks of the tests answer at a host that
// only the case's control plane can reach, and keep the reviews that they are sent.
package admission

import "slices"

// Cases are the cases of this area.
var Cases = slices.Concat(webhookCases, sickWebhookCases, policyCases, expressionCases, namespaceCases, podCases,
	permissionCases)
