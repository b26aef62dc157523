package authorization

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/fakes/webhook"
)

const configured = "KEP-3221; k8s.io/kubernetes/pkg/kubeapiserver/authorizer/reload.go, newForConfig"

var configuredCases = suite.Launching([]suite.Case{
	{ID: "S8/authorizers-are-asked-in-order", Test: authorizersAreAskedInOrder,
		Source: configured + "; k8s.io/apiserver/pkg/authorization/union/union.go, Authorize",
		Promise: "The authorizers of --authorization-config are asked in their order, by any number of webhooks, " +
			"until one allows or denies; those after it are not asked, and about system:masters none is."},
	{ID: "S8/match-conditions-choose-questions", Failure: true, Test: matchConditionsChooseQuestions,
		Source: "KEP-3221; k8s.io/apiserver/pkg/authorization/cel/matcher.go, Match; " +
			"k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go, Authorize",
		Promise: "An authorization webhook is asked only about requests for which all of its match conditions hold. " +
			"If one of them fails and none is false, it is passed over with failurePolicy NoOpinion, and decides " +
			"against the request with Deny."},
	{ID: "S8/failing-authorizer-denies-or-is-passed-over", Failure: true, Test: failingAuthorizer,
		Source: configured + "; k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go, decisionOnError",
		Promise: "While a webhook of the configuration fails, what RBAC allows goes on with failurePolicy NoOpinion, " +
			"and is answered 500 with Deny."},
	{ID: "S8/authorizers-are-reloaded", Waits: true, Failure: true, Test: authorizersAreReloaded,
		Source: "KEP-3221; k8s.io/kubernetes/pkg/kubeapiserver/authorizer/reload.go, checkFile; " +
			"k8s.io/apiserver/pkg/server/options/authorizationconfig/metrics/metrics.go",
		Promise: "When the file of --authorization-config changes, its webhooks decide from then on, in its order; " +
			"one that is no configuration, or leaves out Node or RBAC, is counted as a failed reload and changes " +
			"nothing."},
	{ID: "S8/broken-configuration-is-refused", Failure: true, Test: brokenConfigurationIsRefused,
		Source: "KEP-3221; k8s.io/apiserver/pkg/apis/apiserver/validation/validation.go, " +
			"ValidateAuthorizationConfiguration; k8s.io/kubernetes/pkg/kubeapiserver/options/authorization.go, " +
			"Validate",
		Promise: "A server does not start with an authorization configuration that has a name or RBAC twice, an " +
			"unknown type, a webhook without a failurePolicy or with an expression that does not compile, or beside " +
			"--authorization-mode: the error names the field or the flag."},
})

type (
	object = map[string]any
	// entry is an authorizer of a configuration.
	entry = object
)

// builtInAuthorizers come after the webhooks.
var builtInAuthorizers = []entry{{"type": "Node", "name": "node"}, {"type": "RBAC", "name": "rbac"}}

// authorizers are webhooks that a configuration can name.
type authorizers struct {
	*suite.T
}

// serve serves a webhook, and returns it with its entry in a configuration.
func (a *authorizers) serve(name string) (*webhook.SubjectAccessReview, entry) {
	hook := suite.Serve(a.T, name, webhook.ServeSubjectAccessReview)
	return hook, entry{"type": "Webhook", "name": name, "webhook": object{
		"timeout": "3s", "failurePolicy": "NoOpinion", "subjectAccessReviewVersion": "v1",
		"authorizedTTL": "5m", "unauthorizedTTL": "5m", "cacheAuthorizedRequests": false,
		"cacheUnauthorizedRequests": false,
		"connectionInfo": object{"type": "KubeConfigFile",
			"kubeConfigFile": a.File("kubeconfig", hook.Kubeconfig())},
	}}
}

// with is an entry with other settings of its webhook.
func with(of entry, settings object) entry {
	merged := maps.Clone(of["webhook"].(object))
	maps.Copy(merged, settings)
	changed := maps.Clone(of)
	changed["webhook"] = merged
	return changed
}

// conditions are match conditions.
func conditions(expressions ...string) object {
	var list []any
	for _, expression := range expressions {
		list = append(list, object{"expression": expression})
	}
	return object{"matchConditionSubjectAccessReviewVersion": "v1", "matchConditions": list}
}

// configuration is the content of a file for --authorization-config.
func (a *authorizers) configuration(entries ...entry) []byte {
	content, err := json.Marshal(object{"apiVersion": "apiserver.config.k8s.io/v1",
		"kind": "AuthorizationConfiguration", "authorizers": entries})
	a.Must(err, "encode a configuration")
	return content
}

// launch starts a control plane with webhooks before Node and RBAC, which let the user ruled
// list ConfigMaps. It returns the file, too.
func (a *authorizers) launch(ctx context.Context, hooks ...entry) (file string, t *suite.T) {
	file = a.File("authorization.json", a.configuration(append(hooks, builtInAuthorizers...)...))
	_, t = a.Launch(ctx, envtest.WithFlags("--authorization-config="+file))
	grantAll(ctx, t, "ruled")
	return file, t
}

func authorizersAreAskedInOrder(ctx context.Context, t *suite.T) {
	a := &authorizers{T: t}
	first, firstEntry := a.serve("first")
	second, secondEntry := a.serve("second")
	first.Allow(webhook.Access{User: "allowed"}, "")
	first.Deny(webhook.Access{User: "denied"}, "the first says no")
	second.Deny(webhook.Access{User: "allowed"}, "too late")
	second.Allow(webhook.Access{User: "denied"}, "too late")
	second.Allow(webhook.Access{User: "second"}, "")
	second.Deny(webhook.Access{User: "ruled", Namespace: "kube-system"}, "the second says no")
	first.Deny(webhook.Access{Group: "system:masters"}, "not even you")
	_, other := a.launch(ctx, firstEntry, secondEntry)

	other.As("allowed").Answered(ctx, defaultConfigMaps, http.StatusOK)
	got := t.ExpectStatus(other.As("denied").Get(ctx, defaultConfigMaps), suite.Forbidden)
	t.Expect(got.Message).To(gomega.HaveSuffix(": the first says no"))
	t.Expect(questions(second, "allowed")).To(gomega.BeEmpty(), "the second is asked about what the first allows")
	t.Expect(questions(second, "denied")).To(gomega.BeEmpty(), "the second is asked about what the first denies")
	other.As("second").Answered(ctx, defaultConfigMaps, http.StatusOK)
	t.Expect(questions(first, "second")).To(gomega.HaveLen(1), "the first is asked first")
	other.As("ruled").Answered(ctx, defaultConfigMaps, http.StatusOK)
	other.As("ruled").Answered(ctx, "/api/v1/namespaces/kube-system/configmaps", http.StatusForbidden)
	other.As("nobody").Answered(ctx, defaultConfigMaps, http.StatusForbidden)
	other.As("root", "system:masters").Answered(ctx, defaultConfigMaps, http.StatusOK)
	t.Expect(questions(first, "root")).To(gomega.BeEmpty(), "about system:masters")
}

func matchConditionsChooseQuestions(ctx context.Context, t *suite.T) {
	a := &authorizers{T: t}
	loose, looseEntry := a.serve("loose")
	strict, strictEntry := a.serve("strict")
	for _, hook := range []*webhook.SubjectAccessReview{loose, strict} {
		hook.Deny(webhook.Access{User: "jane"}, "asked")
		hook.Deny(webhook.Access{User: "ruled"}, "asked")
	}
	// The second condition fails for requests of paths.
	_, other := a.launch(ctx,
		with(looseEntry, conditions("request.user == 'jane'", "request.resourceAttributes.namespace == 'default'",
			"!('guests' in request.groups)")),
		with(with(strictEntry, conditions("request.user == 'ruled'", "request.resourceAttributes.namespace == "+
			"'kube-system'")), object{"failurePolicy": "Deny"}))
	said := func(as *suite.T, path string) string {
		return t.ExpectStatus(as.Get(ctx, path), suite.Forbidden).Message
	}
	jane := other.As("jane")
	t.Expect(said(jane, defaultConfigMaps)).To(gomega.HaveSuffix(": asked"))
	t.Expect(said(jane, "/api/v1/namespaces/kube-system/configmaps")).
		NotTo(gomega.HaveSuffix(": asked"), "another namespace")
	t.Expect(said(other.As("jane", "guests"), defaultConfigMaps)).NotTo(gomega.HaveSuffix(": asked"), "a guest")
	jane.Answered(ctx, "/version", http.StatusOK)
	t.Expect(questions(loose, "jane")).To(gomega.HaveLen(1), "what the conditions leave")

	ruled := other.As("ruled")
	ruled.Answered(ctx, defaultConfigMaps, http.StatusOK)
	t.Expect(questions(strict, "ruled")).To(gomega.BeEmpty(), "one condition is false")
	t.Expect(said(ruled, "/api/v1/namespaces/kube-system/configmaps")).To(gomega.HaveSuffix(": asked"))
	asked := len(questions(strict, "ruled"))
	ruled.Answered(ctx, "/version", http.StatusInternalServerError)
	other.As("joe").Answered(ctx, "/version", http.StatusOK)
	t.Expect(questions(strict, "ruled")).To(gomega.HaveLen(asked), "a condition that fails is no question")
}

func failingAuthorizer(ctx context.Context, t *suite.T) {
	for policy, code := range map[string]int{"NoOpinion": http.StatusOK, "Deny": http.StatusInternalServerError} {
		a := &authorizers{T: t}
		hook, hookEntry := a.serve("hook")
		_, other := a.launch(ctx, with(hookEntry, object{"failurePolicy": policy}))
		ruled := other.As("ruled")
		ruled.Answered(ctx, defaultConfigMaps, http.StatusOK)
		mend := hook.Requests.Use(webhook.AccessRule{Answer: func(context.Context,
			webhook.AccessRequest) (webhook.AccessAnswer, error) {
			return webhook.AccessAnswer{}, stub.Status{Code: http.StatusForbidden} // which is not tried again
		}})
		ruled.Answered(ctx, defaultConfigMaps, code)
		other.As("nobody").Answered(ctx, defaultConfigMaps, http.StatusInternalServerError)
		other.Answered(ctx, defaultConfigMaps, http.StatusOK)
		mend()
		ruled.Answered(ctx, defaultConfigMaps, http.StatusOK)
	}
}

func authorizersAreReloaded(ctx context.Context, t *suite.T) {
	a := &authorizers{T: t}
	first, firstEntry := a.serve("first")
	second, secondEntry := a.serve("second")
	first.Allow(webhook.Access{User: "jane"}, "")
	second.Deny(webhook.Access{User: "jane"}, "the second says no")
	file, other := a.launch(ctx, firstEntry)
	jane := other.As("jane")
	lists := func() int { return jane.Get(ctx, defaultConfigMaps).Code }
	jane.Answered(ctx, defaultConfigMaps, http.StatusOK)
	for _, broken := range [][]byte{
		[]byte("no configuration"),
		a.configuration(secondEntry),
		a.configuration(secondEntry, builtInAuthorizers[0]),
		a.configuration(append([]entry{with(secondEntry, object{"failurePolicy": "Maybe"})}, builtInAuthorizers...)...),
	} {
		before := other.Reloads(ctx, "authorization", "failure")
		t.Replace(file, broken)
		other.UntilReloads(ctx, "authorization", "failure", gomega.Equal(before+1), "failures with %s", broken)
		jane.Answered(ctx, defaultConfigMaps, http.StatusOK)
	}
	before := other.Reloads(ctx, "authorization", "success")
	t.Replace(file, a.configuration(append([]entry{secondEntry, firstEntry}, builtInAuthorizers...)...))
	t.Eventually(ctx, lists).Should(gomega.Equal(http.StatusForbidden), "the second is the first now")
	other.UntilReloads(ctx, "authorization", "success", gomega.Equal(before+1), "successes")
	t.Replace(file, a.configuration(append([]entry{firstEntry, secondEntry}, builtInAuthorizers...)...))
	t.Eventually(ctx, lists).Should(gomega.Equal(http.StatusOK), "the first is the first again")
	t.Replace(file, a.configuration(builtInAuthorizers...))
	t.Eventually(ctx, lists).Should(gomega.Equal(http.StatusForbidden), "there is no webhook any more")
	other.As("ruled").Answered(ctx, defaultConfigMaps, http.StatusOK)
}

func brokenConfigurationIsRefused(ctx context.Context, t *suite.T) {
	a := &authorizers{T: t}
	_, hook := a.serve("hook")
	node, rbac := builtInAuthorizers[0], builtInAuthorizers[1]
	for why, entries := range map[string][]entry{
		"authorizers: Required value":            {},
		`authorizers[1].name: Duplicate value`:   {hook, with(hook, nil), rbac},
		`authorizers[2].type: Duplicate value`:   {node, rbac, {"type": "RBAC", "name": "again"}},
		`authorizers[0].type: Unsupported value`: {{"type": "Dice", "name": "dice"}},
		"failurePolicy: Required value":          {with(hook, object{"failurePolicy": ""}), rbac},
		"matchConditions[0].expression":          {with(hook, conditions("request.nothing")), rbac},
		"timeout: Invalid value":                 {with(hook, object{"timeout": "31s"}), rbac},
		"webhook: Required value":                {{"type": "Webhook", "name": "hook"}, rbac},
	} {
		file := t.File("authorization.json", a.configuration(entries...))
		t.Expect(t.NotLaunched(ctx, envtest.WithFlags("--authorization-config="+file))).
			To(gomega.ContainSubstring(why), "%v", entries)
	}
	file := t.File("authorization.json", a.configuration(rbac))
	t.Expect(t.NotLaunched(ctx, envtest.WithFlags("--authorization-config="+file, "--authorization-mode=RBAC"))).
		To(gomega.ContainSubstring("--authorization-config can not be specified when --authorization-mode"))
	_, plain := t.Shared(ctx, "plain")
	plain.Answered(ctx, "/readyz", http.StatusOK)
}
