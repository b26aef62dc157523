package lies_test

func healthLies() map[string][]lie {
	return map[string][]lie{
		"S15/failed-check-withholds-its-reason": {
			changed("the reason is told", "GET", `^/readyz$`, text(`reason withheld`, "not finished")),
			changed("the verdict is missing", "GET", `^/readyz$`, text(`readyz check failed`, "")),
			changed("it can't be excluded", "GET", `exclude=`, code(200, 500)),
			changed("its own path is fine", "GET", `^/readyz/poststarthook`, code(500, 200)),
		},
		"S15/livez-grace-period-spares-hooks": {
			changed("no grace", "GET", `^/livez`, code(200, 500)),
			changed("grace for ever", "GET", `^/livez`, code(500, 200)),
			changed("healthz has grace", "GET", `^/healthz`, code(500, 200)),
		},
		"S15/strangers-may-ask-for-health": {
			changed("they may not", "GET", `^/livez$`, code(200, 403)),
			changed("they may ask more", "GET", `^/metrics$`, code(403, 200)),
		},
	}
}

func bootstrapLies() map[string][]lie {
	const aConfigMap = `/configmaps/extension-apiserver-authentication`
	uid := text(`"uid":"[^"]*"`, `"uid":"the-old-one"`)
	return map[string][]lie{
		"S13/system-namespaces-are-immortal": {
			changed("one is deleted", "DELETE", `/namespaces/kube-public`, code(403, 200)),
			changed("all are immortal", "DELETE", `/namespaces/snowglobe-s13`, code(200, 403)),
		},
		"S13/authentication-config-map-comes-back": {
			changed("no PEM", "GET", aConfigMap, text(`BEGIN CERTIFICATE`, "BEGIN")),
			changed("it is the old one", "GET", aConfigMap, uid),
		},
		"S13/kubernetes-service-is-repaired": {
			changed("it is the old one", "GET", `/services/kubernetes`, uid),
			changed("it does not come back", "DELETE", `/services/kubernetes`, code(200, 500)),
		},
		"S13/cluster-ip-has-an-address": {
			changed("another parent", "GET", `/ipaddresses/`, text(`"resource":"services"`, `"resource":"pods"`)),
			changed("nobody manages it", "GET", `/ipaddresses/`, text(`managed-by`, "made-by")),
			changed("it stays", "GET", `/ipaddresses/`, code(404, 200)),
		},
		"S13/default-roles-are-reconciled": {
			changed("what was added is lost", "GET", `/clusterroles/system:discovery`, text(`/own`, "/other")),
			changed("all are reconciled", "GET", `/clusterroles/system:public-info-viewer`, text(`/own`, "/version")),
			changed("bindings are not", "GET", `/clusterrolebindings/system:basic-user`, code(200, 404)),
		},
		"S13/identity-lease-is-held": {
			changed("nobody holds it", "GET", `/leases`, text(`"holderIdentity":"[^"]*"`, `"holderIdentity":""`)),
			changed("for a minute", "GET", `/leases`, text(`"leaseDurationSeconds":3600`, `"leaseDurationSeconds":60`)),
			changed("it does not come back", "GET", `/leases`, uid),
		},
	}
}

func identityLies() map[string][]lie {
	return map[string][]lie{
		"S20/version-names-what-it-emulates": {
			changed("another release", "GET", `^/version`, text(`"emulationMinor": ?"\d+"`, `"emulationMinor":"1"`)),
			changed("compatible with all", "GET", `^/version`, text(`"minCompatibilityMinor": ?"\d+"`, `"minCompatibilityMinor":"0"`)),
		},
		"S20/version-is-for-everybody": {
			changed("it is secret", "GET", `^/version`, onlyFirst(code(200, 403))),
			changed("it can be set", "POST", `^/version`, code(405, 200)),
		},
		"S20/storage-version-hash-tells-storage-apart": {
			changed("by version", "GET", `^/apis/autoscaling/v1$`, text(`"storageVersionHash":"[^"]*"`, `"storageVersionHash":"v1"`)),
			changed("none", "GET", `^/api/v1$`, text(`"storageVersionHash":"[^"]*"`, `"storageVersionHash":""`)),
		},
		"S20/equivalent-resources-share-their-webhooks": {
			changed("the version of the webhook", "PATCH", widgets+`/one`, text(`/v1"`, `/v2"`)),
		},
		"S20/unserved-version-is-not-equivalent": {
			changed("the refusal is ignored", "PATCH", widgets+`/two`, code(403, 200)),
			changed("it is written", "GET", widgets+`/two`, code(404, 200)),
		},
	}
}
