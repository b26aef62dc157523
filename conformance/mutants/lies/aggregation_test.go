package lies_test

import "net/http"

func aggregationLies() map[string][]lie {
	const apiServices = `/apiservices/v`
	return map[string][]lie{
		"S14/request-reaches-the-aggregated-server": {
			asked("another method", "POST", widgets, query("fieldManager", "you")),
			changed("another code", "GET", widgets+"/one", code(418, 404)),
			changed("headers are lost", "GET", widgets+"/one", without("X-Pot")),
		},
		"S14/identity-goes-in-headers": {
			asked("another user", "GET", widgets, header("Impersonate-User", "joe")),
			asked("no UID", "GET", widgets, header("Impersonate-Uid", "")),
			asked("no extra", "GET", widgets, header("Impersonate-Extra-Example.com%2fScopes", "")),
		},
		"S14/own-identity-headers-are-dropped": {
			asked("its own name", "GET", widgets, impersonateRemote),
		},
		"S14/watch-goes-through-the-proxy": {
			changed("an event is lost", "GET", aWatch, event(1, dropped)),
			changed("the wrong type", "GET", aWatch, text(`"DELETED"`, `"MODIFIED"`)),
		},
		"S14/redirect-is-not-passed-on": {
			changed("it is passed on", "GET", widgets, code(502, 304)),
			changed("not modified is refused", "GET", widgets, code(304, 502)),
		},
		"S14/upgrade-is-passed-on": {
			changed("no upgrade", "GET", widgets, code(101, 200)),
			asked("another user", "GET", widgets, header("Impersonate-User", "joe")),
		},
		"S14/broken-answer-is-an-error": {changed("it is found", "POST", widgets, code(503, 201))},
		"S14/missing-service-makes-unavailable": {
			changed("404", "GET", widgets, code(503, 404)),
			changed("another reason", "GET", apiServices, text(`"ServiceNotFound"`, `"Missing"`)),
			changed("others suffer", "GET", `/deployments`, code(200, 503)),
			changed("no message", "GET", apiServices, text(`is not present`, "")),
		},
		"S14/service-without-endpoints-is-unavailable": {
			changed("any port will do", "GET", apiServices, text(`"ServicePortError"`, `"Passed"`)),
			changed("any endpoint will do", "GET", apiServices, text(`"MissingEndpoints"`, `"EndpointsNotFound"`)),
			changed("served all the same", "GET", widgets, code(503, 200)),
		},
		"S14/failing-discovery-makes-unavailable": {
			changed("no code", "GET", apiServices, text(`: 500"`, `"`)),
			changed("a redirect will do", "GET", apiServices+`2`, text(`"FailedDiscoveryCheck"`, `"Passed"`)),
			changed("served all the same", "GET", widgets, code(503, 200)),
		},
		"S14/untrusted-server-is-unavailable": {
			changed("it is trusted", "GET", apiServices, text(`"status":"False"`, `"status":"True"`)),
			changed("served all the same", "GET", widgets, code(503, 200)),
			changed("no reason", "GET", apiServices, text(`unknown authority`, "")),
		},
		"S14/insecure-and-ca-bundle-exclude-each-other": {
			changed("accepted", "POST", `/apiservices`, code(422, 201)),
			changed("another field", "POST", `/apiservices`, text(`"field":"metadata.name"`, `"field":"spec"`)),
		},
		"S14/priorities-order-groups-and-versions": {
			changed("another is preferred", "GET", `^/apis/snowglobe-s14[^/]*$`, text(`("preferredVersion":\{"groupVersion":"[^"]*/)v1"`, `${1}v2"`)),
			changed("it is not the first", "GET", `^/apis$`, text(`"groups":\[`, `"groups":[{"name":"first"},`)),
		},
		"S14/aggregated-group-is-in-discovery": {
			changed("stale", "GET", `^/apis$`, text(`"freshness":"Current"`, `"freshness":"Stale"`)),
			changed("no short names", "GET", `^/apis$`, text(`"shortNames":\["wdg"\]`, `"shortNames":[]`)),
			changed("other resources", "GET", `^/apis/snowglobe-s14.*/v1$`, text(`"name":"widgets"`, `"name":"gadgets"`)),
		},
		"S14/openapi-is-merged": {
			changed("not in v2", "GET", `^/openapi/v2`, text(`/widgets"`, `/gadgets"`)),
			changed("not in v3", "GET", `^/openapi/v3`, text(`"apis/snowglobe-s14`, `"apis/s14`)),
			changed("built-in paths are lost", "GET", `^/openapi/v2`, text(`"/apis/apps/v1/deployments"`, `"/apis/apps/v1/deploys"`)),
		},
		"S14/deleted-apiservice-ends-its-group": {
			changed("it stays", "GET", `/v1/widgets`, code(404, 503)),
			changed("the other goes too", "GET", `/v2/widgets`, code(200, 404)),
			changed("the group stays", "GET", `^/apis/snowglobe-s14[^/]*$`, code(404, 200)),
		},
	}
}

// impersonateRemote makes the server believe a header that only the aggregator may send.
func impersonateRemote(req *http.Request) {
	if user := req.Header.Get("X-Remote-User"); user != "" {
		req.Header.Set("Impersonate-User", user)
		req.Header.Set("Impersonate-Group", "system:masters")
	}
}
