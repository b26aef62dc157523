package authorization

import (
	"context"

	"github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"snowglobe.test/conformance/suite"
)

// attributes are of what is to be done in the API.
type attributes = authorizationv1.ResourceAttributes

// named limits a rule to objects of these names.
func named(rule rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	rule.ResourceNames = names
	return rule
}

// review asks what a user may do.
func review(ctx context.Context, t *suite.T,
	spec authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	answer := suite.Create(ctx, t, t.Kube.AuthorizationV1().SubjectAccessReviews().
		Create, &authorizationv1.SubjectAccessReview{Spec: spec})
	return answer.Status
}

// may reports whether a user may do something.
func may(ctx context.Context, t *suite.T, user string, what attributes) bool {
	return review(ctx, t, authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &what}).Allowed
}

// untilMay waits until a grant has reached the authorizer, which learns of it by a watch.
func untilMay(ctx context.Context, t *suite.T, user string, what attributes) {
	t.Eventually(ctx, func() bool { return may(ctx, t, user, what) }).Should(gomega.BeTrue(),
		"%s may not %s %s/%s in %q", user, what.Verb, what.Group, what.Resource, what.Namespace)
}

// access is a question and its answer.
type access struct {
	user string
	what attributes
	want bool
}

// expectAccess asserts the answers to reviews.
func expectAccess(ctx context.Context, t *suite.T, questions ...access) {
	for _, q := range questions {
		t.Expect(may(ctx, t, q.user, q.what)).To(gomega.Equal(q.want), "may %s %s: %+v", q.user, q.what.Verb, q.what)
	}
}

// reviewNode reports whether a node may do something.
func reviewNode(ctx context.Context, t *suite.T, user string, what attributes) bool {
	return review(ctx, t, authorizationv1.SubjectAccessReviewSpec{User: user,
		Groups: []string{"system:nodes", "system:authenticated"}, ResourceAttributes: &what}).Allowed
}
