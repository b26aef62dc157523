package audit

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var launched = suite.Launch

var policyCases = []suite.Case{
	{ID: "S19/level-decides-the-contents", Needs: launched, Test: levelDecidesTheContents,
		Source: "k8s.io/apiserver/pkg/audit/request.go, LogRequestObject and LogResponseObject",
		Promise: "Level Metadata has no bodies, Request has that of the request, RequestResponse has both, and of a " +
			"request at level None nothing is told."},
	{ID: "S19/first-rule-that-matches-decides", Needs: launched, Test: firstRuleThatMatchesDecides,
		Source: "k8s.io/apiserver/pkg/audit/policy/checker.go, EvaluatePolicyRule and ruleMatches",
		Promise: "The first rule whose users, groups, verbs, namespaces, resources and names or paths all match " +
			"decides; a request that none matches is not told of."},
	{ID: "S19/stages-can-be-omitted", Needs: launched, Test: stagesCanBeOmitted,
		Source: "k8s.io/apiserver/pkg/audit/policy/util.go and checker.go; k8s.io/apiserver/pkg/audit/context.go, " +
			"ProcessEventStage",
		Promise: "Stages that the policy omits are not told of in any rule, and those that a rule omits not in its " +
			"own requests."},
	{ID: "S19/managed-fields-can-be-omitted", Needs: launched, Test: managedFieldsCanBeOmitted,
		Source: "k8s.io/apiserver/pkg/audit/request.go, copyWithoutManagedFields; " +
			"k8s.io/apiserver/pkg/audit/policy/checker.go, isOmitManagedFields",
		Promise: "With omitManagedFields the bodies in the log leave managed fields out, those of lists too, unless " +
			"a rule says otherwise, and answers keep them."},
}

func levelDecidesTheContents(ctx context.Context, t *suite.T) {
	a := launch(ctx, t, `
omitStages: [RequestReceived]
rules:
- {level: None, resources: [{group: "", resources: [configmaps], resourceNames: [none]}]}
- {level: Metadata, resources: [{group: "", resources: [configmaps], resourceNames: [metadata]}]}
- {level: Request, resources: [{group: "", resources: [configmaps], resourceNames: [request]}]}
- {level: RequestResponse, resources: [{group: "", resources: [configmaps], resourceNames: [all]}]}
`, blocking)
	maps := a.ConfigMaps(ctx)
	names := []string{"none", "metadata", "request", "all"}
	maps.Make(ctx, names...)
	for _, name := range names {
		maps.Change(ctx, name, "sent")
	}
	a.Expect(a.about("/configmaps/none")).To(gomega.BeEmpty())
	for name, want := range map[string]struct {
		level         auditv1.Level
		request, back bool
	}{
		"metadata": {auditv1.LevelMetadata, false, false},
		"request":  {auditv1.LevelRequest, true, false},
		"all":      {auditv1.LevelRequestResponse, true, true},
	} {
		event := a.one("/configmaps/" + name)
		a.Expect(event.Level).To(gomega.Equal(want.level), name)
		a.Expect(event.RequestObject != nil).To(gomega.Equal(want.request), "level %s: requestObject", want.level)
		a.Expect(event.ResponseObject != nil).To(gomega.Equal(want.back), "level %s: responseObject", want.level)
		if want.request {
			a.Expect(string(event.RequestObject.Raw)).To(gomega.ContainSubstring(`"content":"sent"`), "requestObject")
		}
		if want.back {
			a.Expect(string(event.ResponseObject.Raw)).To(gomega.ContainSubstring(`"uid":"`), "responseObject")
		}
		a.Expect(event.ObjectRef).To(gomega.HaveValue(gomega.And(gomega.HaveField("Resource", "configmaps"),
			gomega.HaveField("APIVersion", "v1"),
			gomega.HaveField("Namespace", maps.Namespace), gomega.HaveField("Name", name))), "objectRef")
		a.Expect(event.ResponseStatus).
			To(gomega.HaveValue(gomega.HaveField("Code", gomega.BeEquivalentTo(http.StatusOK))), "responseStatus")
	}
}

func firstRuleThatMatchesDecides(ctx context.Context, t *suite.T) {
	a := launch(ctx, t, `
omitStages: [RequestReceived]
rules:
- {level: None, users: [quiet]}
- {level: Request, users: [loud], verbs: [get]}
- level: RequestResponse
  userGroups: [painters]
  namespaces: [default]
  resources: [{group: "", resources: [configmaps]}]
- {level: Metadata, userGroups: [painters], resources: [{group: apps, resources: ["*/scale"]}]}
- {level: Request, userGroups: [painters], nonResourceURLs: ["/version*"]}
`, blocking)
	ask := func(user, path string) []string {
		before := len(a.about(path))
		a.With(a.cp.Config(envtest.User(user, "system:masters", "painters"))).Get(ctx, path)
		return told(a.about(path)[before:])
	}
	const map1, scale = "/api/v1/namespaces/default/configmaps/a", "/apis/apps/v1/namespaces/default/deployments/a"
	a.Expect(ask("quiet", map1)).To(gomega.BeEmpty(), "the first rule is about the user")
	a.Expect(ask("loud", map1)).To(gomega.Equal([]string{"ResponseComplete Request get"}),
		"the second is before the third")
	a.Expect(ask("other", map1)).To(gomega.Equal([]string{"ResponseComplete RequestResponse get"}))
	a.Expect(ask("other", "/api/v1/namespaces/kube-system/configmaps/a")).To(gomega.BeEmpty(), "another namespace")
	a.Expect(ask("other", scale+"/scale")).To(gomega.Equal([]string{"ResponseComplete Metadata get"}), "a subresource")
	a.Expect(ask("other", scale+"/status")).To(gomega.BeEmpty(), "another subresource")
	a.Expect(ask("other", scale+"?")).To(gomega.BeEmpty(), "no subresource")
	a.Expect(ask("other", "/version")).To(gomega.Equal([]string{"ResponseComplete Request get"}))
	a.Expect(ask("other", "/livez")).To(gomega.BeEmpty(), "no rule")
	a.Get(ctx, map1)
	a.Expect(told(a.about(map1))).To(gomega.HaveLen(2), "the admin is no painter")
}

func stagesCanBeOmitted(ctx context.Context, t *suite.T) {
	a := launch(ctx, t, `
omitStages: [ResponseStarted]
rules:
- {level: Metadata, resources: [{group: "", resources: [configmaps]}]}
- {level: Metadata, omitStages: [RequestReceived, ResponseComplete], resources: [{group: "", resources: [secrets]}]}
- {level: Metadata, omitStages: [RequestReceived], resources: [{group: "", resources: [services]}]}
`, blocking)
	a.watched(ctx, "configmaps")
	a.watched(ctx, "secrets")
	a.watched(ctx, "services")
	a.Expect(told(a.about("/default/configmaps?"))).
		To(gomega.Equal([]string{"RequestReceived Metadata watch", "ResponseComplete Metadata watch"}))
	a.Expect(told(a.about("/default/secrets?"))).To(gomega.BeEmpty(), "all stages are omitted")
	a.Expect(told(a.about("/default/services?"))).To(gomega.Equal([]string{"ResponseComplete Metadata watch"}))
}

// watched asks for a watch that ends by itself after a second.
func (a *auditor) watched(ctx context.Context, resource string) {
	a.Answered(ctx, "/api/v1/namespaces/default/"+resource+"?watch=1&timeoutSeconds=1", http.StatusOK)
}

func managedFieldsCanBeOmitted(ctx context.Context, t *suite.T) {
	a := launch(ctx, t, `
omitManagedFields: true
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  omitManagedFields: false
  resources: [{group: "", resources: [configmaps], resourceNames: [kept]}]
- {level: RequestResponse, resources: [{group: "", resources: [configmaps]}]}
`, blocking)
	maps := a.ConfigMaps(ctx)
	maps.Make(ctx, "kept", "left")
	for _, name := range []string{"kept", "left"} {
		a.Expect(maps.Change(ctx, name, "second").ManagedFields).NotTo(gomega.BeEmpty(), "the answer has them")
	}
	suite.List(ctx, a.T, maps.List, metav1.ListOptions{})
	const fields = `"managedFields"`
	a.Expect(string(a.one("/configmaps/kept").ResponseObject.Raw)).To(gomega.ContainSubstring(fields),
		"the rule keeps them")
	left := string(a.one("/configmaps/left").ResponseObject.Raw)
	a.Expect(left).To(gomega.And(gomega.ContainSubstring(`"content":"second"`),
		gomega.Not(gomega.ContainSubstring(fields))))
	events := a.about("/configmaps")
	list := events[len(events)-1]
	a.Expect(list.Verb).To(gomega.Equal("list"))
	a.Expect(string(list.ResponseObject.Raw)).To(gomega.And(gomega.ContainSubstring(`"name":"left"`),
		gomega.Not(gomega.ContainSubstring(fields))))
}
