package authorization

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/fakes/webhook"
)

var webhookCases = suite.Launching([]suite.Case{
	{ID: "S8/webhook-decides-before-RBAC", Test: webhookDecidesBeforeRBAC,
		Source: "k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go, Authorize; " +
			"k8s.io/apiserver/pkg/authorization/union/union.go",
		Promise: "What an authorization webhook allows is allowed and what it denies is forbidden for its reason, " +
			"whatever RBAC says; without an opinion RBAC decides, and about system:masters it is not asked."},
	{ID: "S8/webhook-is-asked-all-about-a-request", Test: webhookIsAskedAllAboutARequest,
		Source: "KEP-4601; k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go, resourceAttributesFrom; " +
			"k8s.io/apiserver/pkg/endpoints/filters/authorization.go, GetAuthorizerAttributes",
		Promise: "An authorization webhook is told user, groups, verb, group, version, resource, subresource, " +
			"namespace, name and the selectors of a request, or its path."},
	{ID: "S8/webhook-answers-are-remembered", Test: webhookAnswersAreRemembered,
		Source: "k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go, Authorize: authorizedTTL and " +
			"unauthorizedTTL",
		Promise: "What an authorization webhook has allowed is not asked again, and what it has refused is, each for " +
			"as long as its own flag says."},
	{ID: "S8/failing-webhook-is-no-opinion", Failure: true, Test: failingWebhookIsNoOpinion,
		Source: "k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go, decisionOnError; " +
			"k8s.io/apiserver/pkg/endpoints/filters/authorization.go: an error is 500",
		Promise: "While the authorization webhook fails, or contradicts itself, nobody is let in by it and the " +
			"answer is 500; whom RBAC allows goes on, and the failure is not remembered."},
})

// withWebhook launches a control plane that asks a webhook before RBAC.
func withWebhook(ctx context.Context, t *suite.T) (*webhook.SubjectAccessReview, *suite.T) {
	hook := suite.Serve(t, "access", webhook.ServeSubjectAccessReview)
	_, other := t.Launch(ctx, envtest.WithFlags(
		"--authorization-mode=Webhook,RBAC", "--authorization-webhook-version=v1",
		"--authorization-webhook-config-file="+t.File("access.kubeconfig", hook.Kubeconfig()),
		"--authorization-webhook-cache-unauthorized-ttl=1ns"))
	return hook, other
}

// questions are those that the webhook was asked about a user.
func questions(hook *webhook.SubjectAccessReview, user string) []authorizationv1.SubjectAccessReviewSpec {
	var asked []authorizationv1.SubjectAccessReviewSpec
	for _, call := range hook.Requests.Calls() {
		if call.Request.User == user {
			asked = append(asked, call.Request.SubjectAccessReviewSpec)
		}
	}
	return asked
}

const defaultConfigMaps = "/api/v1/namespaces/default/configmaps"

func webhookDecidesBeforeRBAC(ctx context.Context, t *suite.T) {
	hook, other := withWebhook(ctx, t)
	hook.Allow(webhook.Access{User: "allowed"}, "because")
	hook.Deny(webhook.Access{User: "denied"}, "not today")
	hook.Deny(webhook.Access{Group: "system:masters"}, "not even you")
	hook.NoOpinion(webhook.Access{User: "unknown"}, "who is it")
	grantAll(ctx, other, "denied", "ruled")
	other.As("allowed").Answered(ctx, defaultConfigMaps, http.StatusOK)
	other.As("ruled").Answered(ctx, defaultConfigMaps, http.StatusOK)
	status := t.ExpectStatus(other.As("denied").Get(ctx, defaultConfigMaps), suite.Forbidden)
	t.Expect(status.Message).To(gomega.HaveSuffix(`in the namespace "default": not today`))
	status = t.ExpectStatus(other.As("unknown").Get(ctx, defaultConfigMaps), suite.Forbidden)
	t.Expect(status.Message).To(gomega.HaveSuffix(`in the namespace "default": default: who is it`))
	other.As("anybody", "system:masters").Answered(ctx, defaultConfigMaps, http.StatusOK)
	t.Expect(questions(hook, "anybody")).To(gomega.BeEmpty(), "about system:masters")

	what := attributes{Verb: "list", Resource: "configmaps", Namespace: "default"}
	for user, want := range map[string]authorizationv1.SubjectAccessReviewStatus{
		"allowed": {Allowed: true, Reason: "because"}, "denied": {Denied: true, Reason: "not today"},
		"unknown": {Reason: "default: who is it"},
	} {
		t.Expect(review(ctx, other, authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &what})).
			To(gomega.Equal(want), user)
	}
}

// grantAll lets users list ConfigMaps by RBAC.
func grantAll(ctx context.Context, t *suite.T, users ...string) {
	t.MakeClusterRole(ctx, "lister", suite.Rule("configmaps", "list"))
	for _, user := range users {
		t.BindEverywhere(ctx, user, suite.ClusterRoleRef("lister"), suite.User(user))
	}
	what := attributes{Verb: "list", Resource: "configmaps"}
	t.Eventually(ctx, func() bool { return may(ctx, t, users[len(users)-1], what) }).
		Should(gomega.BeTrue(), "the grants hold")
}

func webhookIsAskedAllAboutARequest(ctx context.Context, t *suite.T) {
	hook, other := withWebhook(ctx, t)
	jane := other.As("jane", "devs")
	asked := func(path string) authorizationv1.SubjectAccessReviewSpec {
		before := len(questions(hook, "jane"))
		jane.Answered(ctx, path, http.StatusForbidden)
		after := questions(hook, "jane")
		t.Expect(after).To(gomega.HaveLen(before+1), "questions about GET %s", path)
		return after[before]
	}
	scale := asked("/apis/apps/v1/namespaces/default/deployments/web/scale")
	t.Expect(scale).To(gomega.Equal(authorizationv1.SubjectAccessReviewSpec{User: "jane",
		Groups: []string{"devs", "system:authenticated"},
		ResourceAttributes: &attributes{Verb: "get", Group: "apps", Version: "v1", Resource: "deployments",
			Subresource: "scale", Namespace: "default", Name: "web"}}))
	path := asked("/metrics")
	t.Expect(path.ResourceAttributes).To(gomega.BeNil())
	t.Expect(path.NonResourceAttributes).
		To(gomega.HaveValue(gomega.Equal(authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"})))

	list := asked("/api/v1/pods?labelSelector=color+in+(red,blue),!old" +
		"&fieldSelector=spec.nodeName%3Dn1,status.phase!%3DFailed").ResourceAttributes
	t.Expect(list.Verb).To(gomega.Equal("list"))
	t.Expect(list.LabelSelector).To(gomega.HaveValue(gomega.HaveField("Requirements", gomega.ConsistOf(
		metav1.LabelSelectorRequirement{Key: "color", Operator: "In", Values: []string{"blue", "red"}},
		metav1.LabelSelectorRequirement{Key: "old", Operator: "DoesNotExist"}))))
	t.Expect(list.FieldSelector).To(gomega.HaveValue(gomega.HaveField("Requirements", gomega.ConsistOf(
		metav1.FieldSelectorRequirement{Key: "spec.nodeName", Operator: "In", Values: []string{"n1"}},
		metav1.FieldSelectorRequirement{Key: "status.phase", Operator: "NotIn", Values: []string{"Failed"}}))))
	broken := asked("/api/v1/pods?labelSelector=%2C%2C&watch=1").ResourceAttributes
	t.Expect(broken.Verb).To(gomega.Equal("watch"))
	t.Expect(broken.LabelSelector).To(gomega.BeNil(), "a malformed selector narrows nothing")
}

func webhookAnswersAreRemembered(ctx context.Context, t *suite.T) {
	hook, other := withWebhook(ctx, t)
	hook.Allow(webhook.Access{User: "jane", Resource: "configmaps"}, "")
	for range 2 {
		other.As("jane").Answered(ctx, defaultConfigMaps, http.StatusOK)
		other.As("joe").Answered(ctx, defaultConfigMaps, http.StatusForbidden)
	}
	t.Expect(questions(hook, "jane")).To(gomega.HaveLen(1), "the allowed request is asked about once")
	t.Expect(questions(hook, "joe")).To(gomega.HaveLen(2), "the refused one each time")
	other.As("jane").Answered(ctx, "/api/v1/configmaps", http.StatusOK)
	other.As("jane", "devs").Answered(ctx, defaultConfigMaps, http.StatusOK)
	t.Expect(questions(hook, "jane")).To(gomega.HaveLen(3), "another place and other groups are other questions")
	hook.Deny(webhook.Access{User: "jane"}, "no longer")
	other.As("jane").Answered(ctx, defaultConfigMaps, http.StatusOK)
	other.As("jane").Answered(ctx, "/api/v1/secrets", http.StatusForbidden)
	hook.Allow(webhook.Access{User: "joe"}, "")
	other.As("joe").Answered(ctx, defaultConfigMaps, http.StatusOK)
}

func failingWebhookIsNoOpinion(ctx context.Context, t *suite.T) {
	hook, other := withWebhook(ctx, t)
	grantAll(ctx, other, "ruled")
	hook.Allow(webhook.Access{User: "jane"}, "")
	mend := hook.Requests.Use(webhook.AccessRule{Answer: func(context.Context,
		webhook.AccessRequest) (webhook.AccessAnswer, error) {
		return webhook.AccessAnswer{}, stub.Status{Code: http.StatusServiceUnavailable}
	}})
	got := other.As("jane").Answered(ctx, defaultConfigMaps, http.StatusInternalServerError)
	t.Expect(string(got.Body)).To(gomega.HavePrefix("Internal Server Error: %q: ", defaultConfigMaps))
	other.As("ruled").Answered(ctx, defaultConfigMaps, http.StatusOK)
	other.Answered(ctx, "/api/v1/nodes", http.StatusOK)
	mend()
	other.As("jane").Answered(ctx, defaultConfigMaps, http.StatusOK)

	hook.Requests.Reply(webhook.AccessAnswer{Allowed: true, Denied: true, Reason: "both"}, nil)
	got = other.As("ruled").Answered(ctx, "/api/v1/namespaces/kube-system/configmaps", http.StatusInternalServerError)
	t.Expect(string(got.Body)).To(gomega.ContainSubstring("both allow and deny"))
}
