package authorization

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"snowglobe.test/conformance/suite"
)

var impersonationCases = []suite.Case{
	{ID: "S8/impersonation-replaces-the-user", Level: suite.Core, Test: impersonationReplacesTheUser,
		Source: "k8s.io/apiserver/pkg/endpoints/filters/impersonation/constrained_impersonation.go, " +
			"processImpersonationHeaders; k8s.io/apiserver/pkg/endpoints/filters/impersonation/mode.go, " +
			"legacyImpersonationMode",
		Promise: "An admin who impersonates is that user, with its groups, UID and extra and none of the admin's; " +
			"groups of a service account, system:authenticated, and system:unauthenticated for the anonymous user " +
			"are added."},
	{ID: "S8/impersonation-needs-a-right-for-each-part", Failure: true, Test: impersonationNeedsARightForEachPart,
		Source: "k8s.io/apiserver/pkg/endpoints/filters/impersonation/mode.go, impersonationModeState.check",
		Promise: "The verb impersonate on a user allows to be that user and no other, and neither groups nor UIDs, " +
			"for which there are rights of their own."},
	{ID: "S8/impersonation-needs-a-user", Level: suite.Core, Failure: true, Test: impersonationNeedsAUser,
		Source: "k8s.io/apiserver/pkg/endpoints/filters/impersonation/constrained_impersonation.go, " +
			"processImpersonationHeaders",
		Promise: "A request that names a group, a UID or extra to impersonate and no user is refused with 400."},
	{ID: "S8/constrained-impersonation-is-for-some-requests", Gates: []string{"ConstrainedImpersonation"},
		Test: constrainedImpersonation,
		Source: "KEP-5284; k8s.io/apiserver/pkg/endpoints/filters/impersonation/mode.go, " +
			"constrainedImpersonationModeState",
		Promise: "Who may impersonate:user-info a user, and impersonate-on:user-info:list ConfigMaps, can list them " +
			"as that user, and do nothing else as that user."},
}

// robot is a service account of the case, who has rights as a user of its name.
func robot(ctx context.Context, t *suite.T, rules ...rbacv1.PolicyRule) (user string, as *suite.T) {
	t.Account(ctx, "robot")
	user = "system:serviceaccount:" + t.Namespace(ctx) + ":robot"
	t.MakeClusterRole(ctx, t.Name+"-robot", rules...)
	t.BindEverywhere(ctx, t.Name+"-robot", suite.ClusterRoleRef(t.Name+"-robot"), suite.User(user))
	return user, t.WithToken(t.Token(ctx, "robot", authenticationv1.TokenRequestSpec{}))
}

func impersonationReplacesTheUser(ctx context.Context, t *suite.T) {
	full := t.UserIn(t.AskWhoAmI(ctx, map[string]string{"Impersonate-User": "jane", "Impersonate-Group": "devs",
		"Impersonate-Uid": "u-1", "Impersonate-Extra-Acme.com%2fproject": "snow"}))
	t.Expect(full).To(gomega.Equal(authenticationv1.UserInfo{Username: "jane", UID: "u-1",
		Groups: []string{"devs", "system:authenticated"},
		Extra:  map[string]authenticationv1.ExtraValue{"acme.com/project": {"snow"}}}))
	for user, groups := range map[string][]string{
		"jane": {"system:authenticated"},
		"system:serviceaccount:there:robot": {"system:serviceaccounts", "system:serviceaccounts:there",
			"system:authenticated"},
	} {
		info := t.UserIn(t.AskWhoAmI(ctx, map[string]string{"Impersonate-User": user}))
		t.Expect(info).To(gomega.And(gomega.HaveField("Username", user), gomega.HaveField("Groups", groups),
			gomega.HaveField("UID", ""), gomega.HaveField("Extra", gomega.BeEmpty())))
	}
	nobody := t.ExpectStatus(t.AskWhoAmI(ctx, map[string]string{"Impersonate-User": "system:anonymous"}),
		suite.Forbidden)
	t.Expect(nobody.Message).To(gomega.ContainSubstring(`User "system:anonymous" cannot create`),
		"system:authenticated would be allowed to")
	t.ExpectStatus(t.AskWhoAmI(ctx, map[string]string{"Impersonate-User": "jane",
		"Impersonate-Group": "system:unauthenticated"}),
		suite.Forbidden)
}

func impersonationNeedsARightForEachPart(ctx context.Context, t *suite.T) {
	uid := named(suite.Rule("uids."+authenticationv1.GroupName, "impersonate"), "u-1")
	user, as := robot(ctx, t, named(suite.Rule("users", "impersonate"), "jane"),
		named(suite.Rule("groups", "impersonate"), "devs"), uid)
	untilMay(ctx, t, user, attributes{Verb: "impersonate", Resource: "users", Name: "jane"})
	info := t.UserIn(as.AskWhoAmI(ctx, map[string]string{"Impersonate-User": "jane", "Impersonate-Group": "devs",
		"Impersonate-Uid": "u-1"}))
	t.Expect(info).To(gomega.And(gomega.HaveField("Username", "jane"), gomega.HaveField("UID", "u-1"),
		gomega.HaveField("Groups", []string{"devs", "system:authenticated"})))
	for _, header := range []map[string]string{
		{"Impersonate-User": "joe"},
		{"Impersonate-User": "jane", "Impersonate-Group": "system:masters"},
		{"Impersonate-User": "jane", "Impersonate-Uid": "u-2"},
		{"Impersonate-User": "jane", "Impersonate-Extra-project": "snow"},
		{"Impersonate-User": "system:serviceaccount:default:default"},
	} {
		status := t.ExpectStatus(as.AskWhoAmI(ctx, header), suite.Forbidden)
		t.Expect(status.Message).To(gomega.ContainSubstring(`User "%s" cannot impersonate`, user), "%v", header)
	}
	t.Expect(t.UserIn(as.AskWhoAmI(ctx, nil)).Username).To(gomega.Equal(user))
}

func impersonationNeedsAUser(ctx context.Context, t *suite.T) {
	for name, value := range map[string]string{"Impersonate-Group": "devs", "Impersonate-Uid": "u-1",
		"Impersonate-Extra-project": "snow"} {
		status := t.ExpectStatus(t.AskWhoAmI(ctx, map[string]string{name: value}), suite.BadRequest)
		t.Expect(status.Message).To(gomega.ContainSubstring("without impersonating a user"), name)
	}
}

func constrainedImpersonation(ctx context.Context, t *suite.T) {
	maps := t.ConfigMaps(ctx)
	jane := t.Name + "-jane"
	who := named(suite.Rule("users."+authenticationv1.GroupName, "impersonate:user-info"), jane)
	user, as := robot(ctx, t, who, suite.Rule("configmaps", "impersonate-on:user-info:list"))
	t.Grant(ctx, "janes", jane, suite.Rule("configmaps", "get", "list"))
	untilMay(ctx, t, jane, attributes{Verb: "list", Resource: "configmaps", Namespace: maps.Namespace})
	untilMay(ctx, t, user, attributes{Verb: "impersonate-on:user-info:list", Resource: "configmaps",
		Namespace: maps.Namespace})
	as.Answered(ctx, maps.Path(), http.StatusForbidden)
	as.As(jane).Answered(ctx, maps.Path(), http.StatusOK)
	status := t.ExpectStatus(as.As(jane).Get(ctx, maps.Path()+"/a"), suite.Forbidden)
	t.Expect(status.Message).To(gomega.Equal(fmt.Sprintf(
		`configmaps "a" is forbidden: User "%s" cannot impersonate-on:user-info:get resource "configmaps" in API `+
			`group "" in the namespace "%s"`, user, maps.Namespace)))
	as.As("joe").Answered(ctx, maps.Path(), http.StatusForbidden)
	as.As(jane, "system:masters").Answered(ctx, maps.Path(), http.StatusForbidden)
}
