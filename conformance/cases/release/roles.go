package release

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var roleCases = suite.Launching([]suite.Case{
	{ID: "S8/default-roles-are-those-of-the-release", Test: defaultRolesAreThoseOfTheRelease,
		Source: "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata/cluster-roles.yaml; " +
			"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata/controller-roles.yaml",
		Promise: "A ready server has the default roles and bindings of its release, cluster-wide and in namespaces, " +
			"with their rules, aggregations, labels and subjects, and no others."},
})

//go:embed kept/roles.txt
var keptRoles string

// Role describes a role: a line about itself, and one for each rule. Those of a role that
// aggregates others are made by a controller, and left out.
func Role(kind string, meta metav1.ObjectMeta, rules []rbacv1.PolicyRule,
	aggregation *rbacv1.AggregationRule) []string {
	name := strings.TrimSpace(kind + " " + strings.TrimPrefix(meta.Namespace+"/"+meta.Name, "/"))
	described := []string{fmt.Sprintf("%s labels=%v annotations=%v", name, meta.Labels, meta.Annotations)}
	if aggregation != nil {
		for _, selector := range aggregation.ClusterRoleSelectors {
			described = append(described, fmt.Sprintf("%s aggregates %v", name, selector.MatchLabels))
		}
		return described
	}
	for _, rule := range rules {
		described = append(described, fmt.Sprintf("%s may %v groups=%v resources=%v names=%v urls=%v", name,
			rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs))
	}
	return described
}

// Binding describes a binding in a line.
func Binding(kind string, meta metav1.ObjectMeta, role rbacv1.RoleRef, subjects []rbacv1.Subject) string {
	var whom []string
	for _, subject := range subjects {
		whom = append(whom, strings.TrimSpace(subject.Kind+" "+strings.TrimPrefix(subject.Namespace+"/"+subject.Name,
			"/")))
	}
	slices.Sort(whom)
	return fmt.Sprintf("%s %s labels=%v annotations=%v: %s %s to %v", kind,
		strings.TrimPrefix(meta.Namespace+"/"+meta.Name, "/"),
		meta.Labels, meta.Annotations, role.Kind, role.Name, whom)
}

func defaultRolesAreThoseOfTheRelease(ctx context.Context, beside *suite.T) {
	t := plain(ctx, beside)
	client, marked := t.Kube.RbacV1(), metav1.ListOptions{LabelSelector: "kubernetes.io/bootstrapping=rbac-defaults"}
	var found []string
	clusterRoles := suite.List(ctx, t, client.ClusterRoles().List, marked)
	for _, role := range clusterRoles.Items {
		found = append(found, Role("ClusterRole", role.ObjectMeta, role.Rules, role.AggregationRule)...)
	}
	roles := suite.List(ctx, t, client.Roles("").List, marked)
	for _, role := range roles.Items {
		found = append(found, Role("Role", role.ObjectMeta, role.Rules, nil)...)
	}
	clusterBindings := suite.List(ctx, t, client.ClusterRoleBindings().List, marked)
	for _, binding := range clusterBindings.Items {
		found = append(found, Binding("ClusterRoleBinding", binding.ObjectMeta, binding.RoleRef, binding.Subjects))
	}
	bindings := suite.List(ctx, t, client.RoleBindings("").List, marked)
	for _, binding := range bindings.Items {
		found = append(found, Binding("RoleBinding", binding.ObjectMeta, binding.RoleRef, binding.Subjects))
	}
	expectSame(t, lines(keptRoles), found, "default roles and bindings")
}
