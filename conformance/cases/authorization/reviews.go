package authorization

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var reviewCases = []suite.Case{
	{ID: "S8/access-reviews-agree", Test: accessReviewsAgree,
		Source: "k8s.io/kubernetes/pkg/registry/authorization: subjectaccessreview, localsubjectaccessreview and " +
			"selfsubjectaccessreview, rest.go",
		Promise: "The reviews of a subject's access, in the cluster and in a namespace, and of one's own give the " +
			"same answer with the same reason, and a refusal without an opinion is not a denial."},
	{ID: "S8/rules-review-lists-ones-rules", Test: rulesReviewListsOnesRules,
		Source: "k8s.io/kubernetes/pkg/registry/authorization/selfsubjectrulesreview/rest.go; " +
			"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node/node_authorizer.go, RulesFor",
		Promise: "A SelfSubjectRulesReview lists the rules that hold for the user in a namespace, those for paths " +
			"too, and says that they are complete; for a node it says that they are not."},
	{ID: "S8/malformed-review-is-refused", Level: suite.Core, Failure: true, Test: malformedReviewIsRefused,
		Source: "k8s.io/kubernetes/pkg/apis/authorization/validation/validation.go; " +
			"k8s.io/kubernetes/pkg/registry/authorization/selfsubjectrulesreview/rest.go",
		Promise: "A review of both or neither of a resource and a path, of nobody, or of another namespace than its " +
			"own is refused with 422, and rules without a namespace with 400."},
	{ID: "S8/masters-may-do-everything", Level: suite.Core, Test: mastersMayDoEverything,
		Source: "k8s.io/apiserver/pkg/authorization/authorizerfactory/builtin.go, NewPrivilegedGroups",
		Promise: "Whoever is in system:masters may do everything, without a role, and nobody who merely bears " +
			"that name."},
	{ID: "S8/selectors-are-reviewed", Failure: true, Test: selectorsAreReviewed,
		Source: "KEP-4601; k8s.io/kubernetes/pkg/registry/authorization/util/helpers.go, BuildEvaluationError; " +
			"k8s.io/kubernetes/pkg/apis/authorization/validation/validation.go",
		Promise: "A review may name the selectors of a request: well-formed ones change nothing for RBAC, malformed " +
			"ones are told as an evaluation error beside the answer, and a raw selector with requirements is refused."},
}

func accessReviewsAgree(ctx context.Context, t *suite.T) {
	ns, user := t.Namespace(ctx), t.Name+"-jane"
	t.Grant(ctx, "reader", user, suite.Rule("configmaps", "get"))
	allowed := attributes{Verb: "get", Resource: "configmaps", Namespace: ns, Name: "a"}
	untilMay(ctx, t, user, allowed)
	refused := allowed
	refused.Verb = "delete"
	reason := fmt.Sprintf(`RBAC: allowed by RoleBinding "reader/%s" of Role "reader" to User "%s"`, ns, user)
	for _, q := range []struct {
		what attributes
		want authorizationv1.SubjectAccessReviewStatus
	}{
		{allowed, authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: reason}},
		{refused, authorizationv1.SubjectAccessReviewStatus{}},
	} {
		spec := authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &q.what}
		t.Expect(review(ctx, t, spec)).To(gomega.Equal(q.want), "SubjectAccessReview: %s", q.what.Verb)
		local := suite.Create(ctx, t, t.Kube.AuthorizationV1().LocalSubjectAccessReviews(ns).Create,
			&authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: ns}, Spec: spec})
		t.Expect(local.Status).To(gomega.Equal(q.want), "LocalSubjectAccessReview: %s", q.what.Verb)
		self := suite.Create(ctx, t, t.As(user).Kube.AuthorizationV1().SelfSubjectAccessReviews().Create,
			&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &q.what},
			})
		t.Expect(self.Status).To(gomega.Equal(q.want), "SelfSubjectAccessReview: %s", q.what.Verb)
	}
	path := authorizationv1.NonResourceAttributes{Path: "/version", Verb: "get"}
	members := authorizationv1.SubjectAccessReviewSpec{Groups: []string{"system:authenticated"},
		NonResourceAttributes: &path}
	t.Expect(review(ctx, t, members)).To(gomega.And(gomega.HaveField("Allowed", true),
		gomega.HaveField("Reason", gomega.HaveSuffix(`to Group "system:authenticated"`))))
}

func rulesReviewListsOnesRules(ctx context.Context, t *suite.T) {
	ns, user := t.Namespace(ctx), t.Name+"-jane"
	t.Grant(ctx, "reader", user, named(suite.Rule("configmaps", "get", "watch"), "a"))
	untilMay(ctx, t, user, attributes{Verb: "get", Resource: "configmaps", Namespace: ns, Name: "a"})
	rules := func(as *suite.T, namespace string) authorizationv1.SubjectRulesReviewStatus {
		answer := suite.Create(ctx, t, as.Kube.AuthorizationV1().SelfSubjectRulesReviews().Create,
			&authorizationv1.SelfSubjectRulesReview{
				Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
			})
		return answer.Status
	}
	own := authorizationv1.ResourceRule{Verbs: []string{"get", "watch"}, APIGroups: []string{""},
		Resources: []string{"configmaps"}, ResourceNames: []string{"a"}}
	here := rules(t.As(user), ns)
	t.Expect(here.ResourceRules).To(gomega.ContainElement(own))
	t.Expect(here.NonResourceRules).To(gomega.ContainElement(gomega.And(
		gomega.HaveField("Verbs", []string{"get"}), gomega.HaveField("NonResourceURLs",
			gomega.ContainElement("/version")))))
	t.Expect(here).To(gomega.And(gomega.HaveField("Incomplete", false), gomega.HaveField("EvaluationError", "")))
	t.Expect(rules(t.As(user), metav1.NamespaceDefault).ResourceRules).
		NotTo(gomega.ContainElement(own), "in another namespace")

	node := rules(t.As("system:node:"+t.Name, "system:nodes"), ns)
	t.Expect(node).To(gomega.And(gomega.HaveField("Incomplete", true),
		gomega.HaveField("EvaluationError", gomega.ContainSubstring("node authorizer does not support user rule "+
			"resolution"))))
}

func malformedReviewIsRefused(ctx context.Context, t *suite.T) {
	ns := t.Namespace(ctx)
	resource, path := &attributes{Verb: "get", Resource: "pods",
		Namespace: ns}, &authorizationv1.NonResourceAttributes{Path: "/", Verb: "get"}
	for name, spec := range map[string]authorizationv1.SubjectAccessReviewSpec{
		"both":    {User: "jane", ResourceAttributes: resource, NonResourceAttributes: path},
		"neither": {User: "jane"},
		"nobody":  {ResourceAttributes: resource},
	} {
		_, err := t.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx,
			&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		t.Expect(err).To(suite.BeStatus(suite.Invalid), name)
	}
	for name, spec := range map[string]authorizationv1.SubjectAccessReviewSpec{
		"another namespace": {User: "jane", ResourceAttributes: &attributes{Verb: "get", Resource: "pods",
			Namespace: "other"}},
		"a path": {User: "jane", NonResourceAttributes: path},
	} {
		_, err := t.Kube.AuthorizationV1().LocalSubjectAccessReviews(ns).Create(ctx,
			&authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: ns},
				Spec: spec}, metav1.CreateOptions{})
		t.Expect(err).To(suite.BeStatus(suite.Invalid), name)
	}
	_, err := t.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{}, metav1.CreateOptions{})
	t.Expect(err).To(suite.BeStatus(suite.Invalid), "neither, of oneself")
	_, err = t.Kube.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{},
		metav1.CreateOptions{})
	t.Expect(err).To(suite.BeStatus(suite.BadRequest), "rules without a namespace")
}

func mastersMayDoEverything(ctx context.Context, t *suite.T) {
	what := attributes{Verb: "anything", Group: "any.example.com", Resource: "anything", Namespace: "anywhere"}
	path := authorizationv1.NonResourceAttributes{Path: "/anything", Verb: "anything"}
	for groups, want := range map[string]bool{"system:masters": true, "system:master": false,
		"system:authenticated": false} {
		spec := authorizationv1.SubjectAccessReviewSpec{User: "system:masters", Groups: []string{"others", groups},
			ResourceAttributes: &what}
		t.Expect(review(ctx, t, spec).Allowed).To(gomega.Equal(want), "a resource, group %s", groups)
		spec.ResourceAttributes, spec.NonResourceAttributes = nil, &path
		t.Expect(review(ctx, t, spec).Allowed).To(gomega.Equal(want), "a path, group %s", groups)
	}
	t.As(t.Name, "system:masters").Answered(ctx, "/api/v1/nodes", http.StatusOK)
	t.As("system:masters").Answered(ctx, "/api/v1/nodes", http.StatusForbidden)
}

func selectorsAreReviewed(ctx context.Context, t *suite.T) {
	ns, user := t.Namespace(ctx), t.Name+"-jane"
	t.Grant(ctx, "lister", user, suite.Rule("configmaps", "list"))
	what := attributes{Verb: "list", Resource: "configmaps", Namespace: ns}
	untilMay(ctx, t, user, what)
	spec := authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &what}

	what.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
		{Key: "color", Operator: "In", Values: []string{"red"}},
	}}
	what.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: "metadata.name=a"}
	t.Expect(review(ctx, t, spec)).To(gomega.And(gomega.HaveField("Allowed", true),
		gomega.HaveField("EvaluationError", "")))

	what.LabelSelector.Requirements[0].Operator = "Near"
	what.FieldSelector = nil
	t.Expect(review(ctx, t, spec)).To(gomega.And(gomega.HaveField("Allowed", true),
		gomega.HaveField("EvaluationError", "spec.resourceAttributes.labelSelector ignored due to parse error")))

	what.LabelSelector.RawSelector = "color=red"
	_, err := t.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	t.Expect(t.Causes(err)).To(gomega.ContainElement("spec.resourceAttributes.labelSelector.rawSelector"))
}
