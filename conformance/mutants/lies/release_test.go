package lies_test

// releaseLies are about what a server has of its own.
func releaseLies() map[string][]lie {
	return map[string][]lie{
		"S18/resources-are-those-of-the-release": {
			changed("a short name is lost", "GET", `^/api/v1$`, text(`"shortNames":\["cm"\]`, `"shortNames":[]`)),
			changed("a verb is lost", "GET", `^/apis/batch/v1$`, text(`"deletecollection",`, "")),
			changed("a subresource is lost", "GET", `^/apis/apps/v1$`, text(`"deployments/scale"`, `"deployments/size"`)),
			changed("an alpha version is not there", "GET", `^/apis$`, text(`"groupVersion":"coordination.k8s.io/v1alpha2"`, `"groupVersion":"coordination.k8s.io/v1"`)),
		},
		"S3/stable-versions-are-served-by-default": {
			changed("a stable version is not", "GET", `^/apis$`, text(`"groupVersion":"policy/v1"`, `"groupVersion":"apps/v1"`)),
			changed("a resource is not", "GET", `^/apis/networking.k8s.io/v1$`, text(`"ipaddresses"`, `"addresses"`)),
		},
		"S12/OpenAPI-is-that-of-the-release": {
			changed("a parameter is lost", "GET", `^/openapi/v3/apis/apps/v1`, text(`"fieldManager"`, `"manager"`)),
			changed("another operation", "GET", `^/openapi/v3/api/v1`, text(`"operationId":"listCoreV1Node"`, `"operationId":"listNode"`)),
		},
		"S8/default-roles-are-those-of-the-release": {
			changed("a rule is lost", "GET", `/clusterroles\?`, text(`"/version/",?`, "")),
			changed("another subject", "GET", `/clusterrolebindings\?`, text(`"name":"system:masters"`, `"name":"masters"`)),
			changed("another verb", "GET", `/v1/roles\?`, text(`"watch"`, `"delete"`)),
			changed("another namespace", "GET", `/v1/rolebindings\?`, text(`"kube-public"`, `"kube-system"`)),
		},
		"S4/default-flows-are-those-of-the-release": {
			changed("another precedence", "GET", `/flowschemas$`, text(`"matchingPrecedence":10000`, `"matchingPrecedence":10001`)),
			changed("another share", "GET", `/prioritylevelconfigurations$`, text(`"nominalConcurrencyShares":100`, `"nominalConcurrencyShares":101`)),
			changed("one dangles", "GET", `/flowschemas$`, text(`"status":"False"`, `"status":"True"`)),
		},
		"S3/flags-are-those-of-the-release": {
			changed("another default", "GET", `^/flagz`, text(`"max-requests-inflight":"400"`, `"max-requests-inflight":"401"`)),
			changed("one is missing", "GET", `^/flagz`, text(`"audit-log-format"`, `"audit-format"`)),
		},
	}
}

// refusedLies are about servers that do not start.
func refusedLies() map[string][]lie {
	all := map[string][]lie{}
	for _, id := range []string{
		"S3/impossible-flags-are-refused", "S4/flags-have-limits", "S5/bad-storage-flags-are-refused", "S7/bad-authentication-flags-are-refused",
		"S8/bad-authorization-flags-are-refused", "S9/bad-admission-flags-are-refused", "S19/bad-audit-flags-are-refused",
	} {
		all[id] = []lie{changed("good ones are, too", "GET", `^/livez`, code(200, 500))}
	}
	return all
}

// repairLies are about what a server puts back.
func repairLies() map[string][]lie {
	const addresses, flows = `/ipaddresses/`, `^/apis/flowcontrol.apiserver.k8s.io/v1`
	return map[string][]lie{
		"S13/lost-address-is-made-anew": {
			changed("it is not", "GET", addresses, code(200, 404)),
			changed("of nobody", "GET", addresses, text(`"name":"ipv4-gone-1"`, `"name":"nobody"`)),
			changed("nobody is told", "GET", `/events`, text(`has a wrong reference`, `is wrong`)),
		},
		"S13/stray-address-is-removed": {
			changed("it stays", "GET", addresses, code(404, 200)),
			changed("all are", "GET", addresses+`10.9.0.201`, code(200, 404)),
			changed("nobody is told", "GET", `/events`, text(`IPAddressWrongReference`, `Wrong`)),
		},
		"S13/cluster-ip-without-a-range-is-told": {
			changed("it is not", "GET", `/events`, text(`ClusterIPOutOfRange`, `Out`)),
			changed("the range is not used", "POST", `/services`, code(201, 422)),
			changed("the range stays", "POST", `/services`, code(422, 201)),
		},
		"S13/default-range-is-ready": {
			changed("it is not", "GET", `/servicecidrs/kubernetes`, text(`"status":"True"`, `"status":"False"`)),
			changed("it has one range", "GET", `/servicecidrs/kubernetes`, text(`,"fd00:9::/112"`, ``)),
			changed("it stays away", "GET", `/servicecidrs/kubernetes`, code(200, 404)),
		},
		"S13/kubernetes-endpoints-are-repaired": {
			changed("they are not", "GET", `/endpoints/kubernetes`, text(`192.0.2.2`, `192.0.2.3`)),
			changed("ports are lost", "GET", `/endpoints/kubernetes`, text(`"https"`, `"other"`)),
			changed("the slice is another", "GET", `/endpointslices/kubernetes`, text(`192.0.2.2`, `192.0.2.3`)),
		},
		"S13/default-flows-are-kept-up": {
			changed("a strange one stays", "GET", flows+`/flowschemas/automatic`, code(404, 200)),
			changed("all are put back", "GET", flows+`/flowschemas/probes`, text(`"matchingPrecedence":3`, `"matchingPrecedence":2`)),
			changed("shares of exempt are put back", "GET", flows+`/prioritylevelconfigurations/exempt`, text(`"lendablePercent":7`, `"lendablePercent":0`)),
		},
		"S20/expired-identity-is-removed": {
			changed("it stays", "GET", `/leases/expired`, code(404, 200)),
			changed("others are", "GET", `/leases/other`, code(200, 404)),
		},
		"S15/health-is-plain-text": {
			changed("another type", "GET", `^/livez`, without("Content-Type")),
			changed("browsers may guess", "GET", `^/healthz`, without("X-Content-Type-Options")),
			changed("another verdict", "GET", `^/readyz\?verbose$`, text(`readyz check passed`, `readyz passed`)),
		},
	}
}

// expressionLies are about CEL, and about what a server publishes and passes on.
func expressionLies() map[string][]lie {
	const pods, services = `/pods/`, `/services/`
	return map[string][]lie{
		"S9/CEL-library-computes": {changed("an expression is not true", "POST", configMaps+`\?dryRun`, code(201, 422))},
		"S9/CEL-values-follow-their-schema": {
			changed("all rules are true", "PATCH", widgets+`/two`, code(422, 200)),
			changed("none is", "PATCH", widgets+`/one`, code(201, 422)),
		},
		"S9/CEL-costs-are-limited": {
			changed("they are not", "POST", crds, code(422, 201)),
			changed("bounds do not help", "POST", crds, code(201, 422)),
		},
		"S7/issuer-of-accounts-is-published": {
			changed("another issuer", "GET", `/openid-configuration`, text(`https://first`, `https://third`)),
			changed("another key", "GET", `/jwks`, text(`"kid":"`, `"kid":"x`)),
			changed("strangers may read it", "GET", `/jwks`, code(403, 200)),
			changed("an issuer that is no URL is published", "GET", `/openid-configuration`, code(404, 200)),
		},
		"S2/pod-proxy-reaches-the-pod": {
			changed("another path", "GET", pods, text(`/a/b/ `, `/a/b `)),
			changed("headers are lost", "GET", pods, without("X-Page")),
			changed("any address will do", "GET", pods+`own/proxy`, code(400, 503)),
		},
		"S2/service-proxy-reaches-an-endpoint": {
			changed("another port", "GET", services, text(`8081: `, `8080: `)),
			changed("an unknown port is another's", "GET", services+`pages:third`, code(503, 200)),
		},
	}
}
