package lies_test

// reloadLies are about configuration that a server is started with and looks at again.
func reloadLies() map[string][]lie {
	const metrics = `^/metrics`
	return map[string][]lie{
		"S7/issuers-are-reloaded": {
			changed("a new issuer is not believed", "POST", whoami, text(`"username":"joe"`, `"username":"nobody"`)),
			changed("an old issuer is believed", "POST", whoami, code(401, 201)),
			changed("others are affected", "GET", `^/api/v1/nodes`, code(200, 401)),
		},
		"S7/broken-configuration-changes-nothing": {
			changed("failures are not counted", "GET", metrics, text(`authentication_config_controller_automatic_reloads_total`, `reloads`)),
			changed("it is followed", "POST", whoami, code(401, 201)),
			changed("a good one is not followed", "POST", whoami, text(`"username":"joe"`, `"username":"nobody"`)),
		},
		"S7/broken-configuration-is-refused": {changed("a plain one is broken", "GET", `^/readyz`, code(200, 500))},
		"S8/authorizers-are-asked-in-order": {
			changed("the second denies", "GET", inDefault, toUser(`^allowed$`, code(200, 403))),
			changed("the second allows", "GET", inDefault, toUser(`^denied$`, code(403, 200))),
			changed("RBAC is not asked", "GET", inDefault, toUser(`^ruled$`, code(200, 403))),
			changed("no reason", "GET", inDefault, text(`: the first says no`, ``)),
		},
		"S8/match-conditions-choose-questions": {
			changed("it is not asked", "GET", inDefault, text(`: asked`, ``)),
			changed("a condition that fails is ignored", "GET", `^/version`, code(500, 200)),
			changed("a condition that fails denies", "GET", `^/version`, toUser(`^jane$`, code(200, 500))),
		},
		"S8/failing-authorizer-denies-or-is-passed-over": {
			changed("it is passed over", "GET", inDefault, code(500, 200)),
			changed("it stays", "GET", inDefault, toUser(`^ruled$`, code(200, 500))),
		},
		"S8/authorizers-are-reloaded": {
			changed("failures are not counted", "GET", metrics, text(`authorization_config_controller_automatic_reloads_total`, `reloads`)),
			changed("the first stays the first", "GET", inDefault, toUser(`^jane$`, code(403, 200))),
			changed("RBAC is lost", "GET", inDefault, toUser(`^ruled$`, code(200, 403))),
		},
		"S8/broken-configuration-is-refused": {changed("a plain one is broken", "GET", `^/readyz`, code(200, 500))},
		"S5/encryption-configuration-is-reloaded": {
			changed("failures are not counted", "GET", metrics, text(`encryption_config_controller_automatic_reloads_total`, `reloads`)),
			changed("old keys do not read", "GET", `/secrets/meanwhile`, code(200, 500)),
			asked("nothing is written", "PUT", `/secrets/old`, query("dryRun", "All")),
		},
		"S20/impossible-emulation-is-refused": {changed("a possible one is, too", "GET", `^/readyz`, code(200, 500))},
	}
}

// formLies are about the forms in which things are sent, and what is dropped or refused of them.
func formLies() map[string][]lie {
	const lists = configMaps + `\?`
	return map[string][]lie{
		"S6/streamed-lists-are-the-same-bytes": {
			changed("a space too much", "GET", lists, text(`,"items":\[`, `,"items": [`)),
			changed("not escaped", "GET", lists, text(`\\u003c`, `<`)),
			changed("null for an empty list", "GET", widgets+`\?labelSelector`, text(`"items":\[\]`, `"items": []`)),
			changed("protobuf is padded", "GET", lists, text(`^k8s\x00`, "k8s\x00\x00")),
		},
		"S6/streaming-list-is-compressed": {
			asked("never", "GET", `sendInitialEvents`, header("Accept-Encoding", "identity")),
			asked("always", "GET", `sendInitialEvents`, header("Accept-Encoding", "gzip")),
			changed("caches are not told", "GET", `sendInitialEvents`, without("Vary")),
		},
		"S12/CBOR-is-behind-its-gate": {
			changed("it is not", "GET", configMaps, code(406, 200)),
			changed("JSON will not do", "GET", configMaps+`/a`, code(200, 406)),
			changed("a body is taken", "POST", configMaps, code(415, 201)),
			changed("a patch is taken", "PATCH", configMaps, code(415, 200)),
		},
		"S12/field-behind-a-gate-is-dropped": {
			changed("it is not", "POST", `/leases`, text(`"holderIdentity":`, `"strategy":"x","holderIdentity":`)),
			changed("an update keeps it", "PUT", `/leases`, text(`"holderIdentity":`, `"preferredHolder":"b","holderIdentity":`)),
			changed("all is dropped", "POST", `/leases`, text(`"leaseDurationSeconds":10`, `"leaseDurationSeconds":15`)),
			changed("candidates are there", "GET", `/leasecandidates`, code(404, 200)),
		},
		"S12/declared-validation-agrees": {
			changed("one field", "POST", `/replicationcontrollers`, text(`"field":"spec.replicas"`, `"field":"spec.minReadySeconds"`)),
			changed("updates are not refused", "PUT", `/replicationcontrollers`, code(422, 200)),
			changed("it is not made", "POST", `/replicationcontrollers`, code(201, 422)),
		},
	}
}
