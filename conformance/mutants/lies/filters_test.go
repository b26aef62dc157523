package lies_test

import "net/http"

func auditLies() map[string][]lie {
	return map[string][]lie{
		"S19/level-decides-the-contents":      {asked("another body", "PUT", configMaps, sent(`"content":"sent"`, `"content":"x"`))},
		"S19/first-rule-that-matches-decides": {asked("another subresource", "GET", `/scale$`, path(`/scale$`, "/status"))},
		"S19/stages-can-be-omitted":           {asked("no watch", "GET", aWatch, query("watch"))},
		"S19/managed-fields-can-be-omitted":   {changed("in the answer too", "PUT", configMaps, text(`"managedFields"`, `"ignored"`))},
		"S19/request-has-its-stages":          {asked("another ID", "GET", `/configmaps/a`, header("Audit-ID", "another"))},
		"S19/impersonated-user-is-told":       {asked("another user", "GET", `/configmaps/a`, header("Impersonate-User", "bob"))},
		"S19/refusal-is-told":                 {changed("not refused", "GET", `/configmaps/unknown`, code(401, 200))},
		"S19/admission-annotates":             {asked("only a warning", "POST", policyBindings, sent(`"Audit"`, `"Warn"`))},
		"S19/batches-are-of-their-size":       {asked("one event less", "GET", `/configmaps/n6`, path(`/n6$`, ""))},
		"S19/failing-backend-is-no-hindrance": {changed("it is", "GET", `/configmaps/after`, code(200, 500))},
		"S19/strict-mode-serves-nothing-untold": {
			changed("served", "POST", configMaps, code(500, 201)),
			changed("it had an effect", "GET", `/configmaps/after`, code(404, 200)),
		},
	}
}

func filterLies() map[string][]lie {
	return map[string][]lie{
		"S4/large-body-is-413": {
			changed("accepted", "PATCH", configMaps, code(413, 200)),
			changed("stored", "GET", configMaps+"/a", text(`"content":"first"`, `"content":"x"`)),
		},
		"S4/request-has-its-time": {
			changed("another code", "GET", `/secrets/a`, code(504, 500)),
			changed("any duration", "GET", `timeout=soon`, code(400, 404)),
		},
		"S4/filters-are-in-order": {
			changed("validated first", "GET", `^/no/such/path`, code(401, 404)),
			changed("authorized last", "POST", configMaps, code(403, 422)),
		},
		"S4/too-many-in-flight-is-429": {
			changed("no limit", "GET", `/configmaps$`, code(429, 200)),
			changed("for good", "GET", `/configmaps$`, without("Retry-After")),
		},
		"S4/groups-can-be-turned-off": {
			changed("it is served", "GET", `/autoscaling/v1/`, code(404, 200)),
			changed("it is discovered", "GET", `^/apis/autoscaling$`, text(`"autoscaling/v2","version":"v2"`, `"autoscaling/v1","version":"v1"`)),
		},
		"S4/profiling-can-be-turned-off":  {changed("it can't", "GET", `^/debug/pprof/`, code(404, 200))},
		"S4/large-answers-are-compressed": {asked("never", "GET", configMaps+"/large", header("Accept-Encoding", "identity"))},
		"S4/origins-are-allowed-by-pattern": {
			changed("all are", "GET", `/namespaces$`, with("Access-Control-Allow-Origin", "*")),
			changed("not before the login", "OPTIONS", `/namespaces$`, code(204, 401)),
		},
		"S4/strict-transport-security-is-said": {changed("not always", "GET", `^/readyz`, without("Strict-Transport-Security"))},
		"S4/answers-are-not-to-be-cached":      {changed("they are", "GET", `^/version`, with("Cache-Control", "public"))},
		"S4/deprecated-resource-warns":         {changed("not always", "GET", `/endpoints/missing`, without("Warning"))},
		"S4/answer-names-its-priority-level": {
			changed("not its schema", "GET", `/configmaps/a`, without("X-Kubernetes-PF-FlowSchema-UID")),
			changed("not its level", "GET", `^/readyz`, without("X-Kubernetes-PF-PriorityLevel-UID")),
		},
		"S4/lowest-precedence-matches-first": {
			changed("for all verbs", "GET", `/default/secrets$`, with("X-Kubernetes-PF-FlowSchema-UID", "x")),
			changed("for all paths", "GET", `^/version`, with("X-Kubernetes-PF-FlowSchema-UID", "x")),
		},
		"S4/dangling-schema-says-so":     {changed("it decides", "GET", `/configmaps/a`, with("X-Kubernetes-PF-FlowSchema-UID", "x"))},
		"S4/mandatory-schemas-are-fixed": {changed("they are not", "PUT", `/flowschemas/`, code(422, 200))},
		"S4/level-without-seats-rejects": {changed("it does not", "GET", `/configmaps/a`, code(429, 404))},
		"S4/queue-waits-and-overflows":   {changed("for good", "GET", `/configmaps/a$`, without("Retry-After"))},
	}
}

// with sets a header of the answer.
func with(name, value string) func(*http.Request, *http.Response) {
	return func(_ *http.Request, resp *http.Response) { resp.Header.Set(name, value) }
}
