package lies_test

func storageLies() map[string][]lie {
	const secrets, revisions = `/secrets/`, `/controllerrevisions`
	return map[string][]lie{
		"S5/resource-versions-compare": {
			changed("not a number", "PUT", configMaps, text(`"resourceVersion":"(\d+)"`, `"resourceVersion":"0$1"`)),
			changed("a list is older", "GET", widgets, text(`"metadata":\{"continue":"","resourceVersion":"\d+"`, `"metadata":{"continue":"","resourceVersion":"1"`)),
			changed("it does not grow", "POST", `/namespaces/default/configmaps`, text(`"resourceVersion":"\d+"`, `"resourceVersion":"1"`)),
		},
		"S5/events-cohabit": {
			changed("another object", "GET", `/apis/events.k8s.io/.*/snow`, text(`"uid":"`, `"uid":"x`)),
			changed("nothing to read", "GET", `/api/v1/.*/events/snow`, code(200, 404)),
			changed("it stays", "GET", `/apis/events.k8s.io/.*/snow`, code(404, 200)),
		},
		"S5/keys-and-encodings": {
			changed("another revision", "POST", configMaps, text(`"resourceVersion":"\d+"`, `"resourceVersion":"1"`)),
			asked("nothing is deleted", "DELETE", configMaps, sent(`\{"kind":"DeleteOptions"`, `{"dryRun":["All"],"kind":"DeleteOptions"`)),
		},
		"S5/prefix-and-media-type-are-flags": {
			asked("another content", "POST", configMaps, sent(`"content":"first"`, `"content":"other"`)),
			changed("it is not read", "GET", configMaps+`/a`, text(`"first"`, `"other"`)),
		},
		"S5/events-expire-by-lease": {asked("nothing is stored", "POST", `/events`, query("dryRun", "All"))},
		"S5/storage-version-is-rewritten": {
			asked("it is not written", "PUT", widgets, query("dryRun", "All")),
			changed("the old one is forgotten", "PUT", crds, text(`"storedVersions":\["v1","v2"\]`, `"storedVersions":["v2"]`)),
		},
		"S5/storage-migration-is-validated": {
			changed("any resource", "POST", `/storageversionmigrations`, code(422, 201)),
			changed("it may be changed", "PUT", `/storageversionmigrations`, code(422, 200)),
			asked("status is not checked", "PUT", `/storageversionmigrations/.*/status`, path(`/status$`, "")),
		},
		"S5/compacted-list-is-gone": {
			asked("a newer one", "GET", `resourceVersionMatch=Exact`, query("resourceVersionMatch", "NotOlderThan")),
			asked("a watch begins anew", "GET", configMaps+`.*`+aWatch, query("resourceVersion")),
		},
		"S5/continue-over-compaction": {
			changed("no token", "GET", `continue=`, text(`("code":410.*|"metadata":\{)"continue":"[^"]*"`, `$1"continue":""`)),
			asked("it begins anew", "GET", `continue=`, query("continue")),
			changed("one is lost", "GET", `continue=`, text(`"name":"c"`, `"name":"x"`)),
		},
		"S5/watch-survives-compaction": {changed("one is lost", "GET", configMaps+`.*`+aWatch, event(1, dropped))},
		"S5/continue-token-is-checked": {
			asked("tokens are ignored", "GET", `limit=1&continue=`, query("continue")),
			asked("a version is ignored", "GET", `continue=.*resourceVersion=`, query("resourceVersion")),
			asked("it begins anew", "GET", configMaps+`\?continue=`, query("continue")),
		},
		"S5/encryption-at-rest": {
			asked("another text", "POST", `/secrets`, sent(`this is the plaintext`, `another`)),
			asked("nothing is rewritten", "PUT", secrets, query("dryRun", "All")),
		},
		"S5/encryption-keys-rotate": {
			asked("nothing is rewritten", "PUT", secrets, query("dryRun", "All")),
			changed("200", "GET", secrets, code(500, 200)),
		},
		"S5/kms-v2-encrypts": {changed("it is not a check", "GET", `/readyz/kms-providers`, code(200, 404))},
		"S5/undecodable-object-is-told": {
			changed("the list is empty", "GET", revisions+`$`, code(500, 200)),
			changed("which one is not said", "GET", revisions+`$`, text(`"field":"[^"]*"`, `"field":""`)),
			changed("another reason", "GET", revisions+`$`, text(`"reason":"StorageReadError"|"reason":"StoreReadError"`, `"reason":"InternalError"`)),
			changed("it is deleted", "DELETE", revisions+`/broken`, code(500, 200)),
		},
		"S5/unsafe-deletion-is-guarded": {
			changed("anyone may", "DELETE", revisions+`/broken`, code(403, 200)),
			changed("any object", "DELETE", revisions+`/whole`, code(409, 200)),
			changed("a collection", "DELETE", revisions+`$`, code(422, 200)),
			changed("nobody may", "DELETE", revisions+`/broken`, code(200, 500)),
			asked("a dry run is real", "DELETE", revisions+`/broken`, sent(`"dryRun"`, `"ignored"`)),
		},
		"S5/store-is-a-health-check": {
			changed("always well", "GET", `/livez/etcd`, code(500, 200)),
			changed("ready", "GET", `/readyz/etcd-readiness`, code(500, 200)),
		},
		"S5/lost-reply-is-an-error": {
			changed("the object is not there", "GET", configMaps+`/a`, code(200, 404)),
			changed("created twice", "POST", configMaps, code(409, 201)),
		},
	}
}
