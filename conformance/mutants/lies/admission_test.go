package lies_test

const (
	validatingHooks  = `/validatingwebhookconfigurations`
	mutatingHooks    = `/mutatingwebhookconfigurations`
	policies         = `/validatingadmissionpolicies`
	policyBindings   = `/validatingadmissionpolicybindings`
	mutatingPolicies = `/mutatingadmissionpolicies`
)

func webhookLies() map[string][]lie {
	return map[string][]lie{
		"S9/webhook-is-told-the-whole-request": {
			asked("other options", "PUT", configMaps, query("fieldManager", "other")),
			asked("another user", "DELETE", configMaps, header("Impersonate-User", "bob")),
		},
		"S9/mutating-webhooks-run-in-order": {
			changed("one patch is lost", "POST", configMaps, text(`by a`, `first`)),
			changed("not what is stored", "GET", configMaps+"/one", text(`"b":"too"`, `"b":""`)),
		},
		"S9/webhook-is-reinvoked-if-needed": {
			asked("always", "POST", mutatingHooks, sent(`"Never"`, `"IfNeeded"`)),
			asked("never", "POST", mutatingHooks, sent(`"IfNeeded"`, `"Never"`)),
		},
		"S9/match-conditions-choose-requests": {
			asked("the conditions are ignored", "POST", validatingHooks, sent(`"matchConditions"`, `"ignored"`)),
			asked("their failures are ignored", "POST", validatingHooks, sent(`"failurePolicy":"Fail"`, `"failurePolicy":"Ignore"`)),
		},
		"S9/selectors-choose-requests": {
			asked("all objects are selected", "POST", validatingHooks, sent(`"objectSelector"`, `"ignored"`)),
		},
		"S9/equivalent-requests-match": {
			asked("never", "POST", validatingHooks, sent(`"Equivalent"`, `"Exact"`)),
			asked("always", "POST", validatingHooks, sent(`"Exact"`, `"Equivalent"`)),
		},
		"S9/dry-run-is-told-to-webhooks": {
			asked("it is real", "POST", configMaps, query("dryRun")),
			changed("it need not be heeded", "POST", validatingHooks, code(422, 201)),
		},
		"S9/webhook-warnings-reach-the-client": {changed("they do not", "POST", configMaps, without("Warning"))},
		"S9/webhook-denial-has-its-code-and-message": {
			changed("another code", "POST", configMaps, code(418, 403)),
			changed("it is not said who denies", "POST", configMaps, text(`admission webhook`, `webhook`)),
			changed("stored all the same", "GET", configMaps+"/", code(404, 200)),
		},
		"S9/mutating-webhook-can-deny": {changed("it can't", "POST", configMaps, code(403, 201))},
		"S9/unreachable-webhook-fails-or-is-ignored": {
			changed("always ignored", "POST", configMaps, code(500, 201)),
			asked("never ignored", "POST", validatingHooks, sent(`"failurePolicy":"Ignore"`, `"failurePolicy":"Fail"`)),
		},
		"S9/slow-webhook-is-cut-off": {
			asked("after another time", "POST", validatingHooks, sent(`"timeoutSeconds":2`, `"timeoutSeconds":3`)),
			asked("never ignored", "POST", validatingHooks, sent(`"failurePolicy":"Ignore"`, `"failurePolicy":"Fail"`)),
		},
		"S9/webhook-answer-is-checked":              {changed("it is not", "POST", configMaps, code(500, 201))},
		"S9/ignored-failure-is-no-denial":           {changed("it is ignored too", "POST", configMaps, code(403, 201))},
		"S9/webhook-configurations-call-no-webhook": {changed("nothing is denied", "POST", configMaps, code(400, 201))},
	}
}

func policyLies() map[string][]lie {
	return map[string][]lie{
		"S9/policy-validates": {
			changed("another message", "POST", configMaps, text(`twice is 12`, `unused`)),
			changed("always the same code", "POST", configMaps, code(403, 422)),
		},
		"S9/policy-reads-its-params": {
			asked("they must be there", "POST", policyBindings, sent(`"parameterNotFoundAction":"Allow"`, `"parameterNotFoundAction":"Deny"`)),
		},
		"S9/policy-warns": {
			asked("it denies", "POST", policyBindings, sent(`"Warn"`, `"Deny"`)),
		},
		"S9/policy-applies-where-it-is-bound": {
			asked("the binding selects all", "POST", policyBindings, sent(`"white"`, `"none"`)),
			asked("the policy selects all", "POST", policies, sent(`"grey"`, `"none"`)),
			asked("the conditions are ignored", "POST", policies, sent(`"matchConditions"`, `"ignored"`)),
		},
		"S9/policy-failure-policy": {
			asked("always Fail", "POST", policies, sent(`"Ignore"`, `"Fail"`)),
			changed("always Ignore", "POST", configMaps, text(`resulted in error`, `is fine`)),
		},
		"S9/broken-policy-is-refused": {
			changed("the policy is accepted", "POST", policies, code(422, 201)),
			changed("the binding is accepted", "POST", policyBindings, code(422, 201)),
		},
		"S9/mutating-policy-changes-the-object": {
			changed("not what is stored", "GET", configMaps+"/a", text(`"redred"`, `""`)),
			asked("the conditions are ignored", "POST", mutatingPolicies, sent(`"matchConditions"`, `"ignored"`)),
		},
	}
}

func pluginLies() map[string][]lie {
	return map[string][]lie{
		"S9/system-namespaces-stay": {changed("kube-public goes", "DELETE", `/namespaces/kube-public`, code(403, 200))},
		"S9/terminating-namespace-takes-nothing-new": {
			changed("created", "POST", configMaps, code(403, 201)),
			changed("no cause", "POST", configMaps, text(`NamespaceTerminating`, `Other`)),
		},
		"S9/limit-range-defaults-and-limits": {
			changed("no limit", "POST", `/pods`, code(403, 201)),
			changed("no default limit", "POST", `/pods`, text(`"limits":\{"cpu":"400m"\}`, `"limits":{}`)),
		},
		"S9/quota-refuses-what-exceeds-it": {
			changed("it does not", "POST", `/leases`, code(403, 201)),
			changed("nothing is counted", "GET", `/resourcequotas`, text(`"used":\{[^}]*\}`, `"used":{}`)),
		},
		"S9/default-class-is-set-on-claims": {
			changed("always", "POST", `/persistentvolumeclaims`, text(`"storageClassName":""`, `"storageClassName":"usual"`)),
			changed("not protected", "POST", `/persistentvolumeclaims`, text(`kubernetes.io/pvc-protection`, `example.com/other`)),
		},
		"S9/pod-security-is-enforced": {
			changed("on Deployments too", "POST", `/deployments`, code(201, 403)),
			changed("at any level", "PUT", `/namespaces/`, code(422, 200)),
		},
		"S9/pod-security-warns": {changed("not of Deployments", "POST", `/deployments`, without("Warning"))},
		"S9/priority-class-is-resolved": {
			changed("another policy", "POST", `/pods`, text(`"preemptionPolicy":"Never"`, `"preemptionPolicy":"PreemptLowerPriority"`)),
			changed("any class is there", "POST", `/pods`, code(403, 201)),
		},
		"S9/tolerations-are-defaulted": {changed("for another time", "POST", `/pods`, text(`"tolerationSeconds":300`, `"tolerationSeconds":30`))},
		"S9/runtime-class-sets-overhead": {
			changed("no overhead", "POST", `/pods`, text(`"overhead":\{"cpu":"250m"\}`, `"overhead":{}`)),
			changed("any class is there", "POST", `/pods`, code(403, 201)),
		},
		"S9/new-node-is-tainted": {changed("it is not", "POST", `/nodes`, text(`node.kubernetes.io/not-ready`, `example.com/other`))},
		"S9/service-account-is-defaulted": {
			changed("another account", "POST", `/pods`, text(`"serviceAccountName":"default"`, `"serviceAccountName":"other"`)),
			changed("any account is there", "POST", `/pods`, code(403, 201)),
		},
		"S9/owner-references-need-permission": {changed("they do not", "PUT", configMaps, code(403, 200))},
		"S9/external-IPs-can-be-denied":       {changed("they can't", "POST", `/services`, code(403, 201))},
		"S9/plugin-can-be-disabled": {
			changed("no namespace is made", "GET", `/namespaces/snowglobe-s9`, code(200, 404)),
			changed("another is disabled", "POST", `/pods`, text(`"priority":0`, `"priority":1`)),
		},
	}
}
