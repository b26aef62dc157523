// Package lies_test shows of each conformance case that it can fail: it runs them against
// servers that break what the cases promise.
package lies_test

import (
	"maps"
	"net/http"
)

const (
	configMaps = `/namespaces/[^/]+/configmaps`
	aWatch     = `[?&]watch=(1|true)`
	widgets    = `/widgets`
	crds       = `/customresourcedefinitions`
)

// changed is a lie in the answer, asked one in the request.
func changed(name, method, pattern string, answer func(*http.Request, *http.Response)) lie {
	return lie{name: name, about: about(method, pattern), answer: answer}
}

func asked(name, method, pattern string, request func(*http.Request)) lie {
	return lie{name: name, about: about(method, pattern), request: request}
}

// lies maps each case to lies that break its promise.
func lies() map[string][]lie {
	all := map[string][]lie{}
	for _, some := range []map[string][]lie{
		webhookLies(), policyLies(), pluginLies(), aggregationLies(), strictLies(), applyLies(),
		authenticationLies(), authorizationLies(), authorizerLies(), cachedLies(), followingLies(),
		chainLies(), replicaLies(), configurationLies(), conversionLies(), crdListLies(), watchLies(),
		listLies(), writeLies(), auditLies(), filterLies(), informerLies(), shutdownLies(), healthLies(),
		bootstrapLies(), identityLies(), storageLies(), startupLies(), delegationLies(), discoveryLies(),
		crdLies(), schemaLies(), tunnelLies(), reloadLies(), formLies(), releaseLies(), refusedLies(), repairLies(), expressionLies(),
	} {
		maps.Copy(all, some)
	}
	return all
}

func startupLies() map[string][]lie {
	return map[string][]lie{
		"S15/readyz-answers-ok": {
			changed("livez is not ok", "GET", `^/livez$`, text("ok", "fine")),
			changed("healthz fails", "GET", `^/healthz$`, code(200, 500)),
		},
		"S15/readyz-names-its-checks": {
			changed("informer-sync is missing", "GET", `^/readyz`, text(`\[\+\]informer-sync ok\n`, "")),
			changed("etcd is red", "GET", `^/readyz`, text(`\[\+\]etcd ok`, "[-]etcd failed: reason withheld")),
			changed("a check is listed twice", "GET", `^/readyz`, text(`\[\+\]ping ok\n`, "[+]ping ok\n[+]ping ok\n")),
			changed("the verdict is missing", "GET", `^/readyz`, text(`readyz check passed\n`, "")),
		},
		"S15/livez-leaves-readiness-out": {
			changed("livez waits for informers", "GET", `^/livez`, text(`\[\+\]ping ok\n`, "[+]ping ok\n[+]informer-sync ok\n")),
			changed("healthz forgets etcd", "GET", `^/healthz`, text(`\[\+\]etcd ok\n`, "")),
		},
		"S15/check-has-a-path": {
			changed("unknown checks pass", "GET", `^/readyz/no-such-check`, code(404, 200)),
			changed("a check has no path", "GET", `^/readyz/etcd`, code(200, 404)),
		},
		"S15/check-can-be-excluded": {asked("exclude is ignored", "GET", `exclude=`, query("exclude"))},
		"S16/post-start-hooks-are-checks": {
			changed("a hook is missing", "GET", `^/readyz`, text(`\[\+\]poststarthook/crd-informer-synced ok\n`, "")),
		},
		"S16/held-hook-keeps-readyz-red": {
			changed("red is 200", "GET", `^/readyz`, code(500, 200)),
			changed("readyz stays red", "GET", `^/readyz`, code(200, 500)),
			changed("another check is blamed", "GET", `^/readyz`, text(`\[\+\]ping ok`, "[-]ping failed: reason withheld")),
		},
		"S20/version-is-well-formed":        {changed("another minor", "GET", `^/version`, text(`"minor": ?"\d+"`, `"minor":"1"`))},
		"S20/version-is-the-linked-release": {changed("not stamped", "GET", `^/version`, text(`"gitVersion": ?"[^"]*"`, `"gitVersion":"v0.0.0"`))},
		"S13/system-namespaces-exist":       {changed("kube-public is missing", "GET", `/namespaces/kube-public`, code(200, 404))},
		"S13/kubernetes-service-exists":     {changed("another port", "GET", `/services/kubernetes`, text(`"port": ?443`, `"port":8443`))},
		"S8/bootstrap-roles-exist": {
			changed("roles are not marked", "GET", `/clusterroles/`, text(`"kubernetes.io/bootstrapping"`, `"something.else"`)),
			changed("a binding is missing", "GET", `/clusterrolebindings/system:basic-user`, code(200, 404)),
		},
		"S12/system-priority-classes-exist": {changed("another value", "GET", `/priorityclasses/`, text(`2000001000`, `1000`))},
	}
}

func delegationLies() map[string][]lie {
	return map[string][]lie{
		"S12/built-in-path-is-answered":        {changed("the wrong server answers", "GET", `/deployments`, text(`"DeploymentList"`, `"APIServiceList"`))},
		"S10/custom-resource-path-is-answered": {changed("another kind", "GET", widgets, text(`"WidgetList"`, `"List"`))},
		"S11/unknown-path-is-404": {
			changed("200 for an unknown path", "GET", `^/snowglobe-s11`, code(404, 200)),
			changed("503 for an unknown group", "GET", `^/apis/snowglobe-s11.*/v1/things`, code(404, 503)),
			changed("a Status", "GET", `^/apis/snowglobe-s11`, text(`404 page not found`, `{"kind":"Status","code":404}`)),
		},
		"S11/unknown-path-is-503-before-CRDs-are-known": {
			changed("404 too early", "GET", `/things`, code(503, 404)),
			changed("no time to retry after", "GET", `/things`, text(`"retryAfterSeconds": ?\d+`, `"retryAfterSeconds":0`)),
			changed("503 for ever", "GET", `/things`, code(404, 503)),
		},
		"S12/unknown-resource-is-404": {
			changed("an empty list", "GET", `/no-such-things`, code(404, 200)),
			changed("the path is named", "GET", `/no-such-things`, text(`"details": ?\{\}`, `"details":{"name":"no-such-things"}`)),
		},
		"S12/missing-object-is-404": {changed("no name", "GET", `/no-such-object`, text(`"name": ?"no-such-object",`, ""))},
		"S12/method-is-not-allowed": {changed("404", "POST", `/version`, code(405, 404))},
		"S14/local-apiservices-are-available": {
			changed("another reason", "GET", `/apiservices`, text(`"reason":"Local"`, `"reason":"ServiceNotFound"`)),
			changed("one is missing", "GET", `/apiservices`, text(`"name":"v1.apps"`, `"name":"v1.opps"`)),
		},
		"S14/custom-group-has-an-apiservice": {
			changed("not managed", "GET", `/apiservices/v1.snowglobe-s14`, text(`automanaged":"true"`, `automanaged":"onstart"`)),
			changed("it stays", "GET", `/apiservices/v1.snowglobe-s14`, code(404, 200)),
		},
		"S14/deleted-apiservice-comes-back": {
			changed("it is the old one", "GET", `/apiservices/v1.snowglobe-s14`, text(`"uid":"[^"]*"`, `"uid":"the-old-one"`)),
		},
		"S1/index-lists-the-whole-chain": {
			changed("the aggregator is missing", "GET", `^/$`, text(`"/apis/apiregistration.k8s.io/v1",?`, "")),
			changed("not sorted", "GET", `^/$`, text(`"/api",`, `"/zzz","/api",`)),
		},
	}
}

func discoveryLies() map[string][]lie {
	const aggregated = `^/apis?$`
	return map[string][]lie{
		"S18/core-versions-are-listed": {changed("no address", "GET", `^/api$`, text(`"serverAddress": ?"[^"]*"`, `"serverAddress":""`))},
		"S18/groups-prefer-a-version": {
			changed("preferred but not served", "GET", `^/apis$`, text(`"preferredVersion":\{"groupVersion":"apps/v1","version":"v1"`, `"preferredVersion":{"groupVersion":"apps/v9","version":"v9"`)),
			changed("the group's document differs", "GET", `^/apis/batch$`, text(`"batch/v1"`, `"batch/v2"`)),
			changed("a group is missing", "GET", `^/apis$`, text(`"name":"policy"`, `"name":"police"`)),
		},
		"S18/resources-are-described": {
			changed("no singular", "GET", `^/apis/batch/v1$`, text(`"singularName":"job"`, `"singularName":""`)),
			changed("a subresource without its resource", "GET", `^/apis/apps/v1$`, text(`"name":"deployments",`, `"name":"deploys",`)),
			changed("no verbs", "GET", `^/apis/policy/v1$`, text(`"verbs":\[[^]]*\]`, `"verbs":[]`)),
		},
		"S18/short-names-and-categories": {
			changed("another short name", "GET", `^/api/v1$`, text(`"shortNames":\["cm"\]`, `"shortNames":["cmap"]`)),
			changed("not in all", "GET", `^/apis/apps/v1$`, text(`"categories":\["all"\]`, `"categories":[]`)),
		},
		"S18/aggregated-discovery-agrees": {
			changed("another kind", "GET", aggregated, text(`"kind":"Lease"`, `"kind":"Leasing"`)),
			changed("no short names", "GET", aggregated, text(`"shortNames":\["cm"\]`, `"shortNames":[]`)),
			changed("stale", "GET", aggregated, text(`"freshness":"Current"`, `"freshness":"Stale"`)),
			changed("caches are not told", "GET", aggregated, without("Vary")),
			asked("it is not aggregated", "GET", aggregated, header("Accept", "application/json")),
		},
		"S18/aggregated-discovery-is-cacheable": {
			asked("the tag is ignored", "GET", aggregated, header("If-None-Match", "")),
			changed("no tag", "GET", aggregated, without("ETag")),
			changed("304 for any tag", "GET", aggregated, code(200, 304)),
		},
		"S18/custom-resource-comes-and-goes": {
			changed("no short names", "GET", `^/apis/snowglobe-s18.*/v1$`, text(`"shortNames":\["wdg"\],?`, "")),
			changed("not in aggregated discovery", "GET", `^/apis$`, text(`s18-custom-resource-comes`, "elsewhere")),
			changed("it stays", "GET", `^/apis/snowglobe-s18.*/v1$`, code(404, 200)),
		},
		"S18/preferred-version-of-a-custom-group": {
			changed("the storage version is preferred", "GET", `^/apis/snowglobe-s18[^/]*$`, text(`("preferredVersion":\{"groupVersion":"[^"]*",)"version":"v1"`, `$1"version":"v1beta1"`)),
			changed("another order", "GET", `^/apis/snowglobe-s18[^/]*$`, text(`"version":"v1beta1"`, `"version":"v1gamma1"`)),
		},
		"S12/unknown-media-type-is-406": {asked("JSON to all", "GET", `^/apis$|/namespaces$`, header("Accept", "application/json"))},
		"S14/openapi-v2-is-served": {
			changed("a path is missing", "GET", `^/openapi/v2`, text(`"/apis/apps/v1/deployments"`, `"/apis/apps/v1/deploys"`)),
			asked("no protobuf", "GET", `^/openapi/v2`, header("Accept", "application/json")),
		},
		"S14/openapi-v2-is-cacheable": {asked("the tag is ignored", "GET", `^/openapi/v2`, header("If-None-Match", ""))},
		"S14/openapi-v3-is-served": {
			changed("not to be kept", "GET", `^/openapi/v3/apis/apps/v1`, without("Cache-Control")),
			changed("a group is missing", "GET", `^/openapi/v3$`, text(`"apis/policy/v1"`, `"apis/police/v1"`)),
			asked("the tag is ignored", "GET", `^/openapi/v3`, header("If-None-Match", "")),
		},
		"S10/openapi-v3-follows-a-CRD": {
			changed("no description", "GET", `^/openapi/v3/apis/snowglobe-s10`, text(`edge length in mm`, "")),
			changed("not listed", "GET", `^/openapi/v3$`, text(`"apis/snowglobe-s10`, `"apis/s10`)),
		},
	}
}

func crdLies() map[string][]lie {
	return map[string][]lie{
		"S10/crd-is-established": {
			changed("stored versions are forgotten", "GET", crds, text(`"storedVersions":\["v1"\]`, `"storedVersions":[]`)),
			changed("no short names", "GET", crds, text(`("acceptedNames":\{[^}]*)"wdg"`, `$1"other"`)),
			changed("never established", "GET", crds, text(`"type":"Established"`, `"type":"Founded"`)),
		},
		"S10/custom-resource-is-an-object": {
			changed("generations do not count", "PATCH", widgets, text(`"generation":2`, `"generation":1`)),
			changed("metadata is a generation", "PUT", widgets, text(`"generation":1`, `"generation":2`)),
			changed("read back differently", "GET", widgets+"/one", text(`"size":1`, `"size":7`)),
			changed("it can't be deleted", "GET", widgets+"/one", code(404, 200)),
		},
		"S10/name-conflict-is-refused": {
			changed("no reason", "GET", crds, text(`"reason":"KindConflict"`, `"reason":"Other"`)),
			changed("served all the same", "GET", `/gadgets$`, code(404, 200)),
		},
		"S10/versions-share-their-objects": {
			changed("another object", "GET", `/v1/widgets/one`, text(`"uid":"`, `"uid":"x`)),
			changed("the wrong version", "GET", `/v1/widgets.*watch`, text(`/v1"`, `/v1beta1"`)),
			changed("served all the same", "GET", `/v1alpha1/widgets`, code(404, 200)),
		},
		"S10/stored-versions-are-remembered": {changed("the old one is forgotten", "PATCH", crds, text(`"storedVersions":\[[^]]*\]`, `"storedVersions":["v1"]`))},
		"S10/status-is-a-subresource": {
			asked("status is the object", "PUT", widgets+"/one/status", path(`/status$`, "")),
			asked("the object is its status", "PUT", widgets+"/one$", path(`$`, "/status")),
			changed("status is a generation", "PUT", widgets+"/one/status", text(`"generation":1`, `"generation":2`)),
		},
		"S10/scale-is-a-subresource": {
			changed("another count", "GET", `/scale`, text(`"replicas":3`, `"replicas":4`)),
			asked("scale does not scale", "PUT", `/scale`, sent(`"replicas":5`, `"replicas":3`)),
		},
		"S10/printer-columns-make-a-table": {
			changed("another order", "GET", widgets, text(`"one",3,"red"`, `"one","red",3`)),
			asked("no Table", "GET", widgets, header("Accept", "application/json")),
		},
		"S10/selectable-fields-select": {
			asked("the selector is ignored", "GET", widgets, query("fieldSelector")),
			changed("all fields select", "GET", `fieldSelector=spec.size`, code(400, 200)),
		},
		"S10/deleting-a-CRD-deletes-its-objects": {
			changed("watchers are not told", "GET", widgets+`.*watch`, text(`"DELETED"`, `"MODIFIED"`)),
			changed("the CRD stays", "GET", crds+"/", code(404, 200)),
		},
		"S10/terminating-CRD-waits-for-its-objects": {
			changed("new objects are admitted", "PATCH", widgets+"/probe", code(403, 200)),
			changed("it does not say so", "GET", crds, text(`"type":"Terminating"`, `"type":"Ending"`)),
		},
	}
}

func schemaLies() map[string][]lie {
	return map[string][]lie{
		"S10/schema-validates": {
			changed("everything is good", "POST", widgets, code(422, 201)),
			changed("another field is blamed", "POST", widgets, text(`"field":"spec.size"`, `"field":"spec.color"`)),
		},
		"S10/CEL-rule-validates": {
			changed("another message", "PATCH", widgets, text(`size must be even`, `no`)),
			changed("transitions are free", "PATCH", widgets+"/one", code(422, 200)),
		},
		"S10/unchanged-values-are-tolerated": {
			changed("the old is not tolerated", "PATCH", widgets+"/old", code(200, 422)),
			changed("the new is tolerated", "PATCH", widgets+"/old", code(422, 200)),
		},
		"S10/defaults-are-set": {
			changed("not when read", "GET", widgets+"/before", text(`"size":5`, `"shape":5`)),
			changed("not when written", "PATCH", widgets+"/before", text(`"color":"grey"`, `"color":""`)),
			changed("over what was said", "PATCH", widgets+"/own", text(`"red"`, `"grey"`)),
		},
		"S10/unknown-fields-are-pruned": {changed("not dropped", "POST", widgets, text(`"spec":\{`, `"spec":{"unknown":"x",`))},
		"S10/strict-validation-names-unknown-fields": {
			asked("the mode is ignored", "POST", widgets, query("fieldValidation")),
			changed("no warning", "POST", widgets, without("Warning")),
		},
		"S10/broken-CRD-is-refused":          {changed("accepted", "POST", crds, code(422, 201))},
		"S10/protected-group-needs-approval": {changed("accepted", "POST", crds, code(422, 201))},
	}
}
