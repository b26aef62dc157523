package lies_test

func chainLies() map[string][]lie {
	return map[string][]lie{
		"S1/requests-go-down-the-chain": {
			asked("another group", "GET", `/apiservices\?by`, path(`apiservices$`, "no-such-things")),
			asked("another path", "GET", `/no/such/path`, path(`/no/such/path`, "/version")),
		},
		"S1/failed-stage-is-the-error-of-the-start": {changed("it never becomes ready", "GET", `^/readyz`, code(200, 500))},
		"S1/authentication-comes-first": {
			changed("404 for strangers", "GET", `^/no/such`, code(401, 404)),
			changed("404 without permission", "GET", `^/no/such`, code(403, 404)),
			asked("the token is not sent", "GET", `/namespaces`, header("Authorization", "")),
		},
		"S1/deadline-is-checked-before-the-caller": {
			changed("the caller comes first", "GET", `timeout=soon`, code(400, 401)),
			changed("any timeout is bad", "GET", `timeout=10s`, code(200, 400)),
		},
		"S1/impersonation-replaces-the-caller": {
			asked("it is ignored", "GET", `/namespaces`, header("Impersonate-User", "")),
			changed("a group is enough", "GET", `^/version`, code(400, 200)),
			changed("another user is blamed", "GET", `/namespaces`, text(`jane`, "joe")),
		},
		"S1/answers-are-not-for-caches": {changed("errors are kept", "GET", `^/no/such`, without("Cache-Control"))},
		"S1/answers-carry-an-audit-id": {
			changed("none for errors", "GET", `^/no/such`, without("Audit-Id")),
			asked("the client's is dropped", "GET", `^/version`, header("Audit-Id", "")),
			asked("always the same", "", `.`, header("Audit-Id", "same")),
		},
		"S11/known-custom-resource-is-never-404": {
			changed("404 too early", "GET", widgets, code(503, 404)),
			changed("503 for ever", "GET", `/gadgets`, code(404, 503)),
			changed("200 for what is not known", "GET", `/gadgets`, code(503, 200)),
		},
		"S11/crd-informer-synced-is-a-check": {
			changed("it seems ready", "GET", `^/readyz`, code(500, 200)),
			changed("more is red", "GET", `^/readyz`, text(`\[\+\]ping ok`, "[-]ping failed: reason withheld")),
		},
		"S11/every-method-waits-for-the-CRDs": {
			changed("404 for one", "DELETE", `/things`, code(503, 404)),
			changed("no time to retry after", "PATCH", `/things`, without("Retry-After")),
			changed("503 for ever", "DELETE", `/things`, code(404, 503)),
		},
		"S11/removed-custom-resource-is-404": {
			changed("it stays", "GET", widgets+`$`, code(404, 200)),
			changed("a Status", "GET", widgets+`/one`, text(`404 page not found`, "{}")),
		},
		"S11/unserved-version-is-404": {
			changed("an empty list", "GET", `/v9/widgets`, code(404, 200)),
			changed("another scope", "GET", `/namespaces/default/widgets`, code(404, 200)),
			changed("nothing is served", "GET", `/v1/widgets$`, code(200, 404)),
		},
		"S11/unknown-path-asks-for-permission-first": {
			changed("404 to strangers", "GET", `no.such.group`, code(403, 404)),
			changed("403 to all", "GET", `^/api/v9`, code(404, 403)),
		},
	}
}
