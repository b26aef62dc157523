package lies_test

func replicaLies() map[string][]lie {
	return map[string][]lie{
		"S6/write-at-one-server-is-read-at-another": {
			changed("the list is stale", "GET", configMaps+`\?`, stale()),
			changed("another version", "GET", configMaps+`/b`, text(`"resourceVersion":"`, `"resourceVersion":"1`)),
		},
		"S6/watch-sees-the-writes-of-another-server": {
			changed("a change is lost", "GET", configMaps+`.*`+aWatch, event(2, dropped)),
			changed("the wrong order", "GET", configMaps+`.*`+aWatch, swapped(0)),
			asked("it begins anew", "GET", configMaps+`.*`+aWatch, query("resourceVersion")),
		},
		"S6/versions-compare-across-servers": {
			changed("always the same", "PUT", configMaps, text(`"resourceVersion":"\d+"`, `"resourceVersion":"1000000"`)),
			changed("the list is older", "GET", configMaps+`\?`, text(`"resourceVersion":"\d+"`, `"resourceVersion":"1"`)),
		},
		"S12/conflict-is-seen-across-servers": {
			changed("the last one wins", "PUT", configMaps+`/one`, code(409, 200)),
			changed("any conflict", "POST", configMaps, text(`AlreadyExists`, "Conflict")),
		},
		"S10/CRD-is-served-by-every-server": {
			changed("another object", "GET", widgets+`/one`, text(`"uid":"`, `"uid":"x`)),
			changed("it stays", "GET", widgets+`$`, code(404, 200)),
		},
		"S3/cluster-ips-are-unique-across-servers": {
			changed("always the same", "POST", `/services`, text(`"clusterIP":"[^"]*"`, `"clusterIP":"10.0.0.9"`)),
			changed("a taken one is given", "POST", `/services`, code(422, 201)),
		},
		"S20/each-server-has-an-identity": {
			changed("they share one", "GET", `/leases`, text(`"holderIdentity":"[^"]*"`, `"holderIdentity":"both"`)),
			changed("one is missing", "GET", `/leases`, text(`"items":\[.*`, `"items":[]}`)),
		},
		"S13/endpoints-follow-the-servers": {
			changed("it stays", "GET", `/endpointslices`, text(`\["192.0.2.1"\]`, `["192.0.2.1","192.0.2.2"]`)),
			changed("another address", "GET", `/endpointslices`, text(`192.0.2.2`, `192.0.2.3`)),
		},
		"S16/other-server-serves-on": {
			changed("it is lost", "GET", configMaps+`/two`, code(200, 404)),
			asked("the watch begins anew", "GET", configMaps+`.*`+aWatch, query("resourceVersion")),
		},
	}
}

func configurationLies() map[string][]lie {
	const services = `/services`
	return map[string][]lie{
		"S3/cluster-ips-come-from-the-range": {
			changed("another range", "POST", services, text(`"10\.9\.0\.`, `"10.8.0.`)),
			changed("always the same", "POST", services, text(`"10\.9\.0\.\d+"`, `"10.9.0.7"`)),
			changed("it is not given back", "POST", services, text(`"name":"next"`, `"name":"next`)),
		},
		"S3/cluster-ip-outside-the-range-is-refused": {
			changed("it is given", "POST", services, code(422, 201)),
			changed("another field", "POST", services, text(`spec.clusterIPs`, "spec.ports")),
			changed("headless has one", "POST", services, text(`"None"`, `"10.9.0.9"`)),
		},
		"S3/node-ports-come-from-the-range": {
			changed("another range", "POST", services, text(`"nodePort":301`, `"nodePort":302`)),
			changed("always the same", "POST", services, text(`"nodePort":\d+`, `"nodePort":30101`)),
			changed("a taken one is given", "POST", services, code(422, 201)),
		},
		"S3/full-range-is-an-error": {
			changed("there is always one", "POST", services, code(500, 422)),
			changed("no reason", "POST", services, text(`range is full`, "")),
			changed("it is created", "GET", services+`/k`, code(404, 200)),
		},
		"S3/cluster-ip-stays": {
			changed("it changes", "PUT", services, code(422, 200)),
			changed("it is lost", "PUT", services, text(`"clusterIP":"[^"]*"`, `"clusterIP":""`)),
		},
		"S3/advertised-address-is-the-endpoint": {
			changed("another endpoint", "GET", `/endpointslices`, text(`192.0.2.77`, `192.0.2.78`)),
			changed("another address for clients", "GET", `^/api$`, text(`192.0.2.77`, `192.0.2.78`)),
		},
		"S4/bad-flags-are-refused":        {changed("good ones are, too", "GET", `^/readyz`, code(200, 500))},
		"S3/malformed-ranges-are-refused": {changed("good ones are, too", "GET", `^/readyz`, code(200, 500))},
	}
}
