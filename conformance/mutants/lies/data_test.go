package lies_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

func watchLies() map[string][]lie {
	const stream = configMaps + `.*` + aWatch
	return map[string][]lie{
		"S6/watch-begins-with-what-is-there": {
			changed("an object is missing", "GET", stream, event(0, dropped)),
			changed("a change is lost", "GET", stream, event(3, dropped)),
			changed("the wrong order", "GET", stream, swapped(2)),
		},
		"S6/watch-from-zero": {
			changed("an object is missing", "GET", stream, event(1, dropped)),
			changed("an object comes twice", "GET", stream, event(0, doubled)),
		},
		"S6/watch-follows-a-list-without-a-gap": {
			changed("a change is lost", "GET", stream, event(1, dropped)),
			changed("a change comes twice", "GET", stream, event(2, doubled)),
			changed("the wrong order", "GET", stream, swapped(3)),
			asked("it begins anew", "GET", stream, query("resourceVersion")),
		},
		"S6/watch-resumes-from-any-event": {
			asked("it begins anew", "GET", stream, query("resourceVersion")),
			changed("the first is lost", "GET", stream, event(0, dropped)),
		},
		"S6/watchers-see-the-same": {changed("one misses something", "GET", stream, onlyFirst(event(4, dropped)))},
		"S6/too-old-a-watch-is-gone": {
			asked("it begins anew", "GET", `widgets.*`+aWatch, query("resourceVersion")),
			changed("another code", "GET", `widgets.*`+aWatch, text(`"code":410`, `"code":500`)),
			changed("it goes on", "GET", `widgets.*`+aWatch, event(0, doubled)),
		},
		"S6/malformed-version-is-refused": {
			asked("a watch takes it for none", "GET", `watch=1.*resourceVersion=abc`, query("resourceVersion")),
			asked("a list takes it for none", "GET", `configmaps\?resourceVersion=abc`, query("resourceVersion")),
		},
		"S6/bookmarks-on-request": {
			asked("never", "GET", stream, query("allowWatchBookmarks")),
			asked("to all", "GET", stream, query("allowWatchBookmarks", "true")),
			changed("too old", "GET", stream, text(`("BOOKMARK".*"resourceVersion":)"\d+"`, `$1"1"`)),
		},
		"S6/streaming-list-ends-with-a-bookmark": {
			changed("not annotated", "GET", stream, text(`"k8s.io/initial-events-end":"true"`, `"x":"true"`)),
			changed("the bookmark is lost", "GET", stream, event(3, dropped)),
			changed("an object comes after the end", "GET", stream, swapped(2)),
		},
		"S6/streaming-list-must-be-asked-right": {changed("accepted", "GET", stream, code(422, 200))},
		"S6/deleted-carries-the-last-state": {
			changed("an older state", "GET", stream, text(`("DELETED".*)the last`, `${1}first`)),
			changed("the old version", "GET", stream, text(`("DELETED".*"resourceVersion":)"\d+"`, `$1"1"`)),
		},
		"S6/finalized-deletion-is-two-events": {
			changed("one event", "GET", stream, event(0, dropped)),
			changed("deleted at once", "GET", stream, text(`"MODIFIED"`, `"DELETED"`)),
		},
		"S6/label-selector-turns-updates-into-events": {
			changed("updates stay updates", "GET", stream, text(`"type":"(ADDED|DELETED)"`, `"type":"MODIFIED"`)),
			changed("the new state", "GET", stream, text(`("DELETED".*)"content":"stays"`, `$1"content":"ceases"`)),
			asked("the selector is ignored", "GET", stream, query("labelSelector")),
		},
		"S6/field-selector-watches-one": {asked("the selector is ignored", "GET", stream, query("fieldSelector"))},
		"S6/watch-stays-in-its-namespace": {
			asked("it does not", "GET", stream, path(`/namespaces/[^/]+`, "")),
			changed("all is not all", "GET", `^/api/v1/configmaps.*`+aWatch, event(0, dropped)),
		},
		"S6/watch-times-out": {
			changed("with an error", "GET", stream, event(1, failing)),
			changed("another type", "GET", stream, without("Content-Type")),
			asked("never", "GET", stream, query("timeoutSeconds", "7200")),
		},
		"S6/watch-as-metadata-or-table": {
			asked("whole objects", "GET", stream, header("Accept", "application/json")),
			changed("columns each time", "GET", stream, text(`"columnDefinitions":(null|\[\])`, `"columnDefinitions":[{"name":"Name"}]`)),
		},
	}
}

// onlyFirst lies in the first answer only.
func onlyFirst(answer func(*http.Request, *http.Response)) func(*http.Request, *http.Response) {
	var told atomic.Bool
	return func(req *http.Request, resp *http.Response) {
		if !told.Swap(true) {
			answer(req, resp)
		}
	}
}

func listLies() map[string][]lie {
	const lists, listed = configMaps + `(\?|$)`, `"metadata":\{"resourceVersion":"\d+"`
	return map[string][]lie{
		"S6/list-sees-every-write-before-it": {
			changed("a stale list", "GET", lists, stale()),
			changed("a stale object", "GET", configMaps+"/n", text(`"resourceVersion":"\d+"`, `"resourceVersion":"1"`)),
		},
		"S6/list-is-no-older-than-its-items": {
			changed("it is older", "GET", lists, text(listed, `"metadata":{"resourceVersion":"1"`)),
			changed("it goes back", "GET", lists, goesBack()),
		},
		"S12/pages-show-one-moment": {
			asked("the first page again", "GET", lists+`.*continue=`, query("continue")),
			changed("another moment", "GET", `continue=`, text(`"resourceVersion":"\d+"`, `"resourceVersion":"1"`)),
			changed("an item is lost", "GET", `continue=`, text(`"name":"d"`, `"name":"c"`)),
		},
		"S12/remaining-items-are-counted":      {changed("one too few", "GET", `/leases`, text(`"remainingItemCount":3`, `"remainingItemCount":2`))},
		"S12/broken-continue-token-is-refused": {asked("it is ignored", "GET", `continue=`, query("continue"))},
		"S6/exact-version-is-exact":            {asked("it is not older", "GET", lists, query("resourceVersionMatch", "NotOlderThan"))},
		"S6/not-older-than-is-not-older": {
			changed("a stale list", "GET", lists, stale()),
			changed("another object", "GET", configMaps+"/n", text(`"uid":"`, `"uid":"x`)),
		},
		"S6/future-version-times-out": {
			asked("the present will do", "GET", lists, query("resourceVersion")),
			changed("no cause", "GET", lists, text(`ResourceVersionTooLarge`, `Other`)),
		},
		"S6/version-match-must-be-asked-right": {changed("accepted", "GET", lists, code(422, 200))},
		"S12/field-selectors-select": {
			asked("the selector is ignored", "GET", `/configmaps`, query("fieldSelector")),
			changed("all fields select", "GET", `fieldSelector=data`, code(400, 200)),
		},
		"S12/label-selectors-select": {
			asked("the selector is ignored", "GET", lists, query("labelSelector")),
			changed("an item is lost", "GET", lists, text(`"name":"c"`, `"name":"d"`)),
		},
		"S12/list-as-table": {
			asked("includeObject is ignored", "GET", lists, query("includeObject")),
			asked("no Table", "GET", lists, header("Accept", "application/json")),
		},
		"S12/list-as-metadata": {asked("whole objects", "GET", lists, header("Accept", "application/json"))},
	}
}

// goesBack makes later answers report an older resourceVersion.
func goesBack() func(*http.Request, *http.Response) {
	var lists atomic.Int64
	return func(req *http.Request, resp *http.Response) {
		if lists.Add(1) > 2 {
			text(`("metadata":\{"resourceVersion":")\d+"`, `${1}2"`)(req, resp)
			text(`("uid":"[^"]*","resourceVersion":")\d+"`, `${1}2"`)(req, resp)
		}
	}
}

func writeLies() map[string][]lie {
	return map[string][]lie{
		"S12/stale-update-conflicts": {
			asked("nothing is checked", "PUT", configMaps, sent(`"resourceVersion":"\d+",?`, "")),
			changed("everything conflicts", "PUT", configMaps, code(200, 409)),
		},
		"S12/update-of-another-uid-conflicts": {
			asked("nothing is checked", "PUT", configMaps, sent(`"uid":"[^"]*",?`, "")),
			asked("a patch is not checked", "PATCH", configMaps, sent(`"uid":"[^"]*"`, `"labels":{}`)),
			changed("no uid is right", "PUT", configMaps, code(200, 409)),
		},
		"S12/update-without-change-is-no-write": {
			changed("another version", "PUT", configMaps, text(`"resourceVersion":"\d+"`, `"resourceVersion":"1"`)),
			changed("it is an event", "GET", configMaps+`.*`+aWatch, text(`"ADDED"`, `"MODIFIED"`)),
		},
		"S12/second-create-already-exists": {
			changed("created again", "POST", configMaps, code(409, 201)),
			changed("the first is changed", "GET", configMaps+"/a", text(`"resourceVersion":"\d+"`, `"resourceVersion":"1"`)),
		},
		"S12/generated-names-differ": {asked("one name", "POST", configMaps, sent(`"generateName":"generated-"`, `"name":"generated-aaaaa"`))},
		"S12/dry-run-leaves-nothing": {
			asked("it is real", "POST", configMaps, query("dryRun")),
			asked("an update is real", "PUT", configMaps, query("dryRun")),
			asked("a deletion is real", "DELETE", configMaps, sent(`"dryRun"`, `"ignored"`)),
		},
		"S12/delete-preconditions-hold": {asked("nothing is checked", "DELETE", configMaps, sent(`"preconditions"`, `"ignored"`))},
		"S12/delete-collection-deletes-the-selected": {
			asked("all are deleted", "DELETE", configMaps, query("labelSelector")),
			asked("none is deleted", "DELETE", configMaps, query("labelSelector", "no=such")),
		},
		"S12/json-patch-tests-first":        {asked("nothing is tested", "PATCH", configMaps, sent(`something else`, `first`))},
		"S12/merge-patch-removes-with-null": {asked("nothing is removed", "PATCH", configMaps, sent(`"content":null,`, ""))},
		"S12/strategic-merge-patch-merges-lists": {
			asked("the list is replaced", "PATCH", configMaps, header("Content-Type", "application/merge-patch+json")),
		},
		"S12/apply-conflicts-name-the-manager": {
			asked("always by force", "PATCH", configMaps, query("force", "true")),
			asked("never by force", "PATCH", configMaps, query("force", "false")),
			changed("another user is named", "PATCH", configMaps, text(`alice`, `someone`)),
		},
		"S12/apply-removes-what-it-no-longer-names": {
			asked("managers are mixed up", "PATCH", configMaps, someManager()),
			changed("not removed", "PATCH", configMaps, text(`"data":\{`, `"data":{"own":"x",`)),
		},
		"S12/immutable-means-immutable":      {changed("it is not", "PATCH", configMaps, code(422, 200))},
		"S9/no-object-without-its-namespace": {changed("created", "POST", configMaps, code(404, 201))},
	}
}

// someManager applies as another manager each time.
func someManager() func(*http.Request) {
	var n atomic.Int64
	return func(req *http.Request) { query("fieldManager", fmt.Sprintf("manager-%d", n.Add(1)))(req) }
}
