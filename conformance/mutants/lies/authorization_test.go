package lies_test

import (
	"net/http"
	"regexp"
	"sync/atomic"
)

const (
	accessReviews = `/subjectaccessreviews`
	whoami        = `/selfsubjectreviews`
	secrets       = `/secrets`
	rbacRoles     = `/namespaces/[^/]+/roles`
	rbacBindings  = `/namespaces/[^/]+/rolebindings`
	inDefault     = `^/api/v1/namespaces/default/configmaps`
)

func authorizationLies() map[string][]lie {
	return map[string][]lie{
		"S8/denied-by-default": {
			changed("allowed", "GET", configMaps, code(403, 200)),
			changed("no namespace", "GET", configMaps, text(` in the namespace`, ` at the cluster scope`)),
			changed("no subresource", "GET", `/pods/a/log`, text(`pods/log`, `pods`)),
			changed("another verb", "DELETE", `/pods$`, text(`deletecollection`, `delete`)),
			changed("no group", "PUT", `/scale`, text(`deployments.apps`, `deployments`)),
			changed("the path as it is", "GET", `^/s8`, text(`&lt;|\\u0026lt;`, `(`)),
			changed("no details", "GET", configMaps+"/a", text(`"name": ?"a",`, ``)),
		},
		"S8/role-allows-in-its-namespace": {
			changed("it does not", "GET", configMaps+"/a", code(200, 403)),
			changed("another verb", "DELETE", configMaps+"/a", code(403, 200)),
			changed("another resource", "GET", secrets, code(403, 200)),
			changed("all namespaces", "GET", `^/api/v1/configmaps`, code(403, 200)),
			changed("another user", "GET", configMaps+"$", toUser(`-janet$`, code(403, 200))),
			changed("the binding stays", "GET", configMaps+"$", fromThe(3, code(403, 200))),
		},
		"S8/cluster-role-reaches-as-far-as-its-binding": {
			changed("a RoleBinding reaches all", "GET", `^/api/v1/nodes`, code(403, 200)),
			changed("a ClusterRoleBinding reaches one", "GET", `^/api/v1/configmaps`, code(200, 403)),
		},
		"S8/subjects-are-users-groups-and-accounts": {
			asked("kinds are mixed up", "POST", rbacBindings, sent(`"kind":"Group"`, `"kind":"User"`)),
			asked("namespaces are mixed up", "POST", rbacBindings, sent(`"namespace":"other"`, `"namespace":"others"`)),
		},
		"S8/resource-names-limit-a-rule": {
			changed("they do not", "GET", configMaps+"/b", code(403, 200)),
			changed("lists are free", "GET", configMaps+"$", code(403, 200)),
			changed("no list at all", "GET", `fieldSelector=metadata.name%3Da`, code(200, 403)),
			changed("creation is free", "POST", configMaps, code(403, 201)),
		},
		"S8/rule-matches-verb-group-and-subresource": {
			asked("verbs do not matter", "POST", rbacRoles, sent(`"verbs":\["get"\]`, `"verbs":["*"]`)),
			asked("groups do not matter", "POST", rbacRoles, sent(`"apps"`, `"*"`)),
			asked("subresources are included", "POST", rbacRoles, sent(`"pods"`, `"pods","pods/*","pods/log"`)),
			asked("a star is a name", "POST", rbacRoles, sent(`"\*"`, `"star"`)),
		},
		"S8/paths-need-non-resource-rules": {
			changed("all paths", "GET", `^/s8/ones`, code(403, 404)),
			changed("the prefix alone", "GET", `^/s8/all$`, code(403, 404)),
			changed("all verbs", "POST", `^/s8/one`, code(403, 404)),
			changed("another reason", "POST", accessReviews, text(`RBAC: allowed`, `allowed`)),
		},
		"S8/binding-without-its-role-grants-nothing": {
			changed("no reason", "GET", configMaps, text(`: rbac: RBAC: role[^}]*not found`, ``)),
			changed("nothing else holds", "GET", configMaps, code(200, 403)),
		},
		"S8/no-role-beyond-ones-own-rights": {
			changed("any role", "POST", rbacRoles, code(403, 201)),
			changed("any update", "PUT", rbacRoles, code(403, 200)),
			changed("no verbs", "POST", rbacRoles, text(`Verbs:\[[^\]]*\]`, `Verbs:[]`)),
			changed("escalate is nothing", "POST", rbacRoles, code(201, 403)),
		},
		"S8/no-binding-beyond-ones-own-rights": {
			changed("any binding", "POST", rbacBindings, code(403, 201)),
			changed("a binding to nothing", "POST", rbacBindings, code(404, 201)),
			asked("bind is nothing", "POST", rbacRoles, sent(`"bind"`, `"tie"`)),
		},
		"S8/aggregation-needs-all-rights": {
			changed("anybody may", "POST", `/clusterroles.*dryRun`, code(403, 201)),
			changed("view is no sum", "GET", `/clusterroles/view`, text(`"aggregationRule"`, `"ignored"`)),
		},
		"S8/role-of-a-binding-is-immutable": {
			changed("it is not", "PUT", rbacBindings, code(422, 200)),
			changed("subjects are", "PUT", rbacBindings, code(200, 422)),
		},
		"S8/access-reviews-agree": {
			changed("a refusal is a denial", "POST", accessReviews, text(`"allowed":false`, `"allowed":false,"denied":true`)),
			changed("no reason in the namespace", "POST", `/localsubjectaccessreviews`, text(`"reason":`, `"ignored":`)),
			changed("not of oneself", "POST", `/selfsubjectaccessreviews`, text(`"allowed":true`, `"allowed":false`)),
		},
		"S8/rules-review-lists-ones-rules": {
			changed("no names", "POST", `/selfsubjectrulesreviews`, text(`"resourceNames":\["a"\]`, `"resourceNames":[]`)),
			changed("never complete", "POST", `/selfsubjectrulesreviews`, text(`"incomplete":false`, `"incomplete":true`)),
			changed("always complete", "POST", `/selfsubjectrulesreviews`, text(`"incomplete":true`, `"incomplete":false`)),
		},
		"S8/malformed-review-is-refused": {
			changed("both are good", "POST", accessReviews, code(422, 201)),
			changed("any namespace", "POST", `/localsubjectaccessreviews`, code(422, 201)),
			changed("no namespace", "POST", `/selfsubjectrulesreviews`, code(400, 201)),
		},
		"S8/masters-may-do-everything": {
			asked("any group may", "POST", accessReviews, sent(`"system:master"`, `"system:masters"`)),
			asked("the name will do", "GET", `^/api/v1/nodes`, header("Impersonate-Group", "system:masters")),
		},
		"S8/selectors-are-reviewed": {
			changed("no error", "POST", accessReviews, text(`"evaluationError":"[^"]*"`, `"evaluationError":""`)),
			changed("both are good", "POST", accessReviews, code(422, 201)),
		},
	}
}

// toUser lies to users whose name matches.
func toUser(name string, answer func(*http.Request, *http.Response)) func(*http.Request, *http.Response) {
	matches := regexp.MustCompile(name)
	return func(req *http.Request, resp *http.Response) {
		if matches.MatchString(req.Header.Get("Impersonate-User")) {
			answer(req, resp)
		}
	}
}

func authorizerLies() map[string][]lie {
	return map[string][]lie{
		"S8/impersonation-replaces-the-user": {
			asked("it does not", "POST", whoami, header("Impersonate-User", "")),
			asked("no extra", "POST", whoami, header("Impersonate-Extra-Acme.com%2fproject", "")),
			changed("no groups of accounts", "POST", whoami, text(`"system:serviceaccounts",`, ``)),
			changed("authenticated all the same", "POST", whoami, code(403, 201)),
		},
		"S8/impersonation-needs-a-right-for-each-part": {
			changed("any of them", "POST", whoami, code(403, 201)),
			changed("another user is named", "POST", whoami, text(`system:serviceaccount:`, `system:account:`)),
			asked("groups are ignored", "POST", whoami, header("Impersonate-Group", "")),
		},
		"S8/impersonation-needs-a-user": {changed("it does not", "POST", whoami, code(400, 201))},
		"S8/constrained-impersonation-is-for-some-requests": {
			changed("for all", "GET", configMaps+"/a", code(403, 404)),
			changed("for none", "GET", configMaps+"$", code(200, 403)),
			changed("any user", "GET", configMaps+"$", toUser(`^joe$`, code(403, 200))),
		},
		"S8/node-reads-what-its-pods-mention": {
			changed("any Secret", "GET", secrets+"/other", code(403, 200)),
			changed("all nodes", "GET", secrets+"/mounted", toUser(`:south-`, code(403, 200))),
			changed("the list", "GET", secrets+"$", code(403, 200)),
			changed("none at all", "GET", secrets+"/mounted", code(200, 403)),
			asked("the Pod stays", "DELETE", `/pods/main`, sent(`"gracePeriodSeconds":0`, `"gracePeriodSeconds":0,"dryRun":["All"]`)),
		},
		"S8/node-writes-what-is-its-own": {
			asked("any Lease", "POST", accessReviews, sent(`"verb":"list","group":"coordination.k8s.io"`, `"verb":"create","group":"coordination.k8s.io"`)),
			changed("nothing", "POST", accessReviews, text(`"allowed":true`, `"allowed":false`)),
			changed("everything", "POST", accessReviews, text(`"allowed":false`, `"allowed":true`)),
		},
		"S8/webhook-decides-before-RBAC": {
			changed("it does not allow", "GET", inDefault, toUser(`^allowed$`, code(200, 403))),
			changed("it does not deny", "GET", inDefault, toUser(`^denied$`, code(403, 200))),
			changed("no reason", "GET", inDefault, text(`: not today`, `: some day`)),
			changed("a denial is none", "POST", accessReviews, text(`"denied":true,?`, ``)),
		},
		"S8/webhook-is-asked-all-about-a-request": {
			asked("no label selector", "GET", `^/api/v1/pods`, query("labelSelector")),
			asked("no field selector", "GET", `^/api/v1/pods`, query("fieldSelector")),
			asked("no groups", "GET", `/scale`, header("Impersonate-Group", "")),
			asked("no subresource", "GET", `/scale`, path(`/scale`, "")),
		},
		"S8/webhook-answers-are-remembered": {
			asked("no group is another question", "GET", inDefault, header("Impersonate-Group", "")),
			changed("the change is seen", "GET", inDefault, fromThe(5, code(200, 403))),
			changed("the refusal stays", "GET", inDefault, fromThe(6, code(200, 403))),
		},
		"S8/failing-webhook-is-no-opinion": {
			changed("forbidden", "GET", inDefault, code(500, 403)),
			changed("nobody comes in", "GET", inDefault, toUser(`^ruled$`, code(200, 500))),
			changed("a contradiction is a yes", "GET", `/kube-system/configmaps`, code(500, 200)),
		},
	}
}

// fromThe lies from the nth answer on, counted from 0.
func fromThe(n int64, answer func(*http.Request, *http.Response)) func(*http.Request, *http.Response) {
	var seen atomic.Int64
	return func(req *http.Request, resp *http.Response) {
		if seen.Add(1) > n {
			answer(req, resp)
		}
	}
}
