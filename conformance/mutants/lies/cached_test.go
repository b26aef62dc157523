package lies_test

import "net/http"

func cachedLies() map[string][]lie {
	const lists, stream = configMaps + `(\?|$)`, configMaps + `.*` + aWatch
	return map[string][]lie{
		"S6/lists-come-from-the-cache": {
			asked("an exact one is another", "GET", `resourceVersionMatch=Exact&resourceVersion=\d{2,}|resourceVersion=\d{2,}&resourceVersionMatch=Exact`, query("resourceVersionMatch", "NotOlderThan")),
			asked("pages begin anew", "GET", `continue=`, query("continue")),
			changed("another state", "GET", `resourceVersion=1$`, code(500, 200)),
			changed("it fails", "GET", lists, code(200, 500)),
		},
		"S6/late-cache-gives-no-stale-list": {
			asked("a stale list", "GET", configMaps+`\?labelSelector=[^&]*$`, query("resourceVersion", "0")),
			asked("any version", "GET", `resourceVersionMatch=NotOlderThan&`, query("resourceVersion", "0")),
		},
		"S6/starting-cache-is-429": {
			changed("no time to come back", "GET", widgets, without("Retry-After")),
			changed("an empty list", "GET", widgets+`(\?resourceVersion=0)?$`, code(429, 200)),
			changed("gets wait too", "GET", widgets+`/one`, code(200, 429)),
			changed("limited lists wait too", "GET", widgets+`\?limit=1`, code(200, 429)),
		},
		"S6/large-lists-are-whole": {
			changed("an item differs", "GET", lists, text(`"name":"n07"`, `"name":"n17"`)),
			asked("never compressed", "GET", lists, header("Accept-Encoding", "identity")),
			changed("no kind", "GET", lists, text(`"kind":"ConfigMapList"`, `"kind":"List"`)),
		},
		"S6/list-from-zero-has-no-pages": {
			asked("it has", "GET", `resourceVersion=0`, query("resourceVersion")),
			asked("nothing has", "GET", lists, query("limit")),
		},
		"S6/future-get-times-out": {
			asked("the present will do", "GET", configMaps+`/a\?resourceVersion=\d{2,}`, query("resourceVersion")),
			changed("an exact list is another", "GET", `Exact`, code(504, 200)),
		},
		"S6/continue-stands-alone": {
			asked("the match is ignored", "GET", `resourceVersionMatch.*continue`, query("resourceVersionMatch")),
			asked("it begins anew", "GET", `continue=`, query("continue")),
		},
		"S6/bookmark-passes-what-a-selector-hides": {
			asked("the selector is ignored", "GET", stream, query("labelSelector")),
			changed("too old", "GET", stream, text(`("BOOKMARK".*"resourceVersion":)"\d+"`, `$1"1"`)),
		},
		"S6/streaming-list-from-a-version": {
			changed("an object is lost", "GET", stream, event(0, dropped)),
			changed("too old", "GET", stream, text(`("BOOKMARK".*"resourceVersion":)"\d+"`, `$1"1"`)),
			asked("the present will do", "GET", stream+`.*resourceVersion=\d{10,}|resourceVersion=\d{10,}.*`+aWatch, query("resourceVersion", "0")),
			asked("always initial events", "GET", `sendInitialEvents=false`, query("sendInitialEvents", "true")),
		},
		"S6/slow-watcher-is-ended": {
			changed("an event is lost", "GET", stream, event(3, dropped)),
			changed("the wrong order", "GET", stream, swapped(2)),
		},
		"S6/watch-in-protobuf": {
			changed("JSON differs", "GET", stream, text(`"content":"third"`, `"content":"other"`)),
			changed("one is lost", "GET", stream, event(2, dropped)),
		},
	}
}

func followingLies() map[string][]lie {
	const aggregated = `^/apis$`
	return map[string][]lie{
		"S18/etag-follows-the-resources": {
			changed("304 for the old one", "GET", aggregated, stillTheSame()),
		},
		"S18/stale-group-is-marked": {
			changed("not marked", "GET", aggregated, text(`"freshness":"Stale"`, `"freshness":"Current"`)),
			changed("all are marked", "GET", aggregated, text(`"freshness":"Current"`, `"freshness":"Stale"`)),
			changed("it stays", "DELETE", `/apiservices`, code(200, 202)),
		},
		"S18/verbs-are-what-is-served": {
			changed("a list that is not", "GET", `/tokenreviews`, code(405, 200)),
			changed("no list that is", "GET", `/deployments\?`, code(200, 405)),
			changed("a create that is not", "POST", `/componentstatuses`, code(405, 400)),
		},
		"S18/storage-version-has-a-hash": {
			changed("another", "GET", `^/apis/apps/v1$`, text(`"storageVersionHash":"`, `"storageVersionHash":"x`)),
			changed("a status has one", "GET", `^/api/v1$`, text(`"name":"pods/status",`, `"name":"pods/status","storageVersionHash":"x",`)),
			changed("none", "GET", `^/apis/snowglobe-s18.*/v2$`, text(`"storageVersionHash":"[^"]*"`, `"storageVersionHash":""`)),
		},
		"S18/form-of-discovery-is-negotiated": {
			asked("always one", "GET", aggregated, header("Accept", "application/json")),
			changed("200", "GET", aggregated, code(406, 200)),
		},
	}
}

// stillTheSame answers 304 to whoever sends an ETag.
func stillTheSame() func(*http.Request, *http.Response) {
	return func(req *http.Request, resp *http.Response) {
		if req.Header.Get("If-None-Match") != "" {
			code(200, 304)(req, resp)
		}
	}
}
