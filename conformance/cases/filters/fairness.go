package filters

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var fairnessCases = []suite.Case{
	{ID: "S4/answer-names-its-priority-level", Level: suite.Core, Test: answerNamesItsPriorityLevel,
		Source: "KEP-1040; k8s.io/apiserver/pkg/server/filters/priority-and-fairness.go, setResponseHeaders; " +
			"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap/default.go",
		Promise: "Each answer has the UIDs of the flow schema and the priority level that its request fell under: " +
			"exempt for system:masters, catch-all or global-default for others."},
	{ID: "S4/lowest-precedence-matches-first", Level: suite.Core, Test: lowestPrecedenceMatchesFirst,
		Source: "KEP-1040; k8s.io/apiserver/pkg/util/flowcontrol/apf_filter.go and rule.go; " +
			"k8s.io/apiserver/pkg/util/apihelpers/helpers.go, FlowSchemaSequence",
		Promise: "Of the flow schemas that match a request, by subject, verb, resource and namespace, the one with " +
			"the lowest matchingPrecedence decides, and among equals the name that sorts first."},
	{ID: "S4/dangling-schema-says-so", Level: suite.Core, Failure: true, Test: danglingSchemaSaysSo,
		Source: "KEP-1040; k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go, presyncFlowSchemaStatus",
		Promise: "A flow schema whose priority level is not there has the condition Dangling and decides nothing, " +
			"until the level comes."},
	{ID: "S4/mandatory-schemas-are-fixed", Level: suite.Core, Failure: true, Test: mandatorySchemasAreFixed,
		Source: "KEP-1040; k8s.io/kubernetes/pkg/apis/flowcontrol/validation/validation.go, ValidateFlowSchema and " +
			"ValidatePriorityLevelConfiguration",
		Promise: "The flow schemas and priority levels exempt and catch-all are there, and what they say can't be " +
			"changed: 422."},
	{ID: "S4/level-without-seats-rejects", Failure: true, Needs: suite.Launch, Test: levelWithoutSeatsRejects,
		Source: "KEP-1040; k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset/queueset.go, StartRequest",
		Promise: "When the seats of a level that rejects are taken, the next request is answered 429 with " +
			"Retry-After and the level's UID, while those on other levels and exempt ones are served."},
	{ID: "S4/queue-waits-and-overflows", Failure: true, Needs: suite.Launch, Test: queueWaitsAndOverflows,
		Source: "KEP-1040; k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset/queueset.go, " +
			"rejectOrEnqueueToBoundLocked",
		Promise: "A request that finds no seat waits in its level's queue and is served when a seat is free; one " +
			"that finds the queue full is answered 429."},
}

const (
	schemaHeader = "X-Kubernetes-PF-FlowSchema-UID"
	levelHeader  = "X-Kubernetes-PF-PriorityLevel-UID"
)

// flows are the flow schemas and priority levels of a case.
type flows struct{ *suite.T }

// schema is a flow schema for a user's requests about resources of all namespaces.
func (f flows) schema(name, level, user string, precedence int32) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name + "-" + name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
			MatchingPrecedence:         precedence,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser,
					User: &flowcontrolv1.UserSubject{Name: user}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"},
					Namespaces: []string{"*"}}},
			}},
		},
	}
}

// create creates a flow schema, which is removed when the case ends.
func (f flows) create(ctx context.Context, schema *flowcontrolv1.FlowSchema) *flowcontrolv1.FlowSchema {
	client := f.Kube.FlowcontrolV1().FlowSchemas()
	return suite.Create(ctx, f.T, client.Create, schema)
}

// level creates a priority level with one seat, of which none is lent.
func (f flows) level(ctx context.Context,
	response flowcontrolv1.LimitResponse) *flowcontrolv1.PriorityLevelConfiguration {
	client := f.Kube.FlowcontrolV1().PriorityLevelConfigurations()
	return suite.Create(ctx, f.T, client.Create, &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: new(int32(1)), BorrowingLimitPercent: new(int32(0)),
				LimitResponse: response},
		},
	})
}

// uids returns those of a flow schema and of its priority level.
func (f flows) uids(ctx context.Context, schema, level string) (of [2]string) {
	s := suite.Get(ctx, f.T, f.Kube.FlowcontrolV1().FlowSchemas().Get, schema)
	l := suite.Get(ctx, f.T, f.Kube.FlowcontrolV1().PriorityLevelConfigurations().Get, level)
	return [2]string{string(s.UID), string(l.UID)}
}

// classified returns what an answer says that its request fell under.
func classified(got suite.Answer) [2]string {
	return [2]string{got.Header.Get(schemaHeader), got.Header.Get(levelHeader)}
}

const anyMap = "/api/v1/namespaces/default/configmaps/a"

func answerNamesItsPriorityLevel(ctx context.Context, t *suite.T) {
	f := flows{t}
	// The server makes the default schemas in the background, and learns of them by a watch.
	falls := func(as *suite.T, path, schema, level string) {
		t.Served(ctx, "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/"+schema)
		t.Eventually(ctx, func() [2]string { return classified(as.Get(ctx, path)) }).
			Should(gomega.Equal(f.uids(ctx, schema, level)), "GET %s", path)
	}
	falls(t.As("root", "system:masters"), anyMap, "exempt", "exempt")
	falls(t.As("jane"), anyMap, "global-default", "global-default")
	falls(t.As("system:kube-scheduler"), anyMap, "kube-scheduler", "workload-high")
	falls(t.As("jane"), "/readyz", "probes", "exempt")
}

func lowestPrecedenceMatchesFirst(ctx context.Context, t *suite.T) {
	f := flows{t}
	f.create(ctx, f.schema("late", "workload-low", t.Name, 900))
	f.create(ctx, f.schema("b", "workload-low", t.Name, 500))
	f.create(ctx, f.schema("a", "workload-high", t.Name, 500))
	secrets := f.schema("secrets", "system", t.Name, 100)
	secrets.Spec.Rules[0].ResourceRules[0] = flowcontrolv1.ResourcePolicyRule{
		Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"},
		Namespaces: []string{"default"}}
	f.create(ctx, secrets)
	user := t.As(t.Name)
	of := func(path string) func() [2]string {
		return func() [2]string { return classified(user.Get(ctx, path)) }
	}
	first, a := f.uids(ctx, secrets.Name, "system"), f.uids(ctx, t.Name+"-a", "workload-high")
	t.Eventually(ctx, of(secret)).Should(gomega.Equal(first), "the lowest precedence")
	t.Eventually(ctx, of(anyMap)).Should(gomega.Equal(a), "the name among equals")
	t.Expect(of("/api/v1/namespaces/default/secrets")()).To(gomega.Equal(a), "another verb")
	t.Expect(of("/api/v1/namespaces/kube-system/secrets/a")()).To(gomega.Equal(a), "another namespace")
	t.Expect(of("/version")()).To(gomega.Equal(f.uids(ctx, "global-default", "global-default")), "no resource")
}

func danglingSchemaSaysSo(ctx context.Context, t *suite.T) {
	f := flows{t}
	schema := f.create(ctx, f.schema("dangling", t.Name, t.Name, 100))
	dangling := func() flowcontrolv1.ConditionStatus {
		got := suite.Get(ctx, t, t.Kube.FlowcontrolV1().FlowSchemas().Get, schema.Name)
		for _, condition := range got.Status.Conditions {
			if condition.Type == flowcontrolv1.FlowSchemaConditionDangling {
				return condition.Status
			}
		}
		return "not known"
	}
	t.Eventually(ctx, dangling).Should(gomega.Equal(flowcontrolv1.ConditionTrue))
	user := t.As(t.Name)
	t.Expect(classified(user.Get(ctx, anyMap))).To(gomega.Equal(f.uids(ctx, "global-default", "global-default")),
		"it decides nothing")
	level := f.level(ctx, flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject})
	t.Eventually(ctx, dangling).Should(gomega.Equal(flowcontrolv1.ConditionFalse))
	t.Eventually(ctx, func() [2]string { return classified(user.Get(ctx, anyMap)) }).Should(
		gomega.Equal([2]string{string(schema.UID), string(level.UID)}), "it decides")
}

func mandatorySchemasAreFixed(ctx context.Context, t *suite.T) {
	schemas, levels := t.Kube.FlowcontrolV1().FlowSchemas(), t.Kube.FlowcontrolV1().PriorityLevelConfigurations()
	for _, name := range []string{"exempt", "catch-all"} {
		schema := suite.Get(ctx, t, schemas.Get, name)
		t.Expect(schema.Annotations).To(gomega.HaveKeyWithValue("apf.kubernetes.io/autoupdate-spec", "true"))
		schema.Spec.Rules[0].ResourceRules[0].Verbs = []string{"get"}
		_, err := schemas.Update(ctx, schema, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec"}), "FlowSchema %s", name)
	}
	level := suite.Get(ctx, t, levels.Get, "catch-all")
	level.Spec.Limited.LimitResponse.Type = flowcontrolv1.LimitResponseTypeReject
	level.Spec.Limited.BorrowingLimitPercent = new(int32(7))
	_, err := levels.Update(ctx, level, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec"}), "PriorityLevelConfiguration catch-all")
}

// seats is a control plane with twenty seats, of which the level of the case has one.
func seats(ctx context.Context, t *suite.T, response flowcontrolv1.LimitResponse,
) (*envtest.ControlPlane, flows, [2]string) {
	cp, beside := t.Launch(ctx, envtest.WithFlags("--max-requests-inflight=10", "--max-mutating-requests-inflight=10"))
	f := flows{beside}
	admins(ctx, beside, "jane", "bob")
	level := f.level(ctx, response)
	schema := f.create(ctx, f.schema("jane", level.Name, "jane", 100))
	uids := [2]string{string(schema.UID), string(level.UID)}
	f.Eventually(ctx, func() [2]string { return classified(beside.As("jane").Get(ctx, anyMap)) }).
		Should(gomega.Equal(uids), "jane's level")
	return cp, f, uids
}

func levelWithoutSeatsRejects(ctx context.Context, t *suite.T) {
	cp, f, uids := seats(ctx, t, flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject})
	jane := f.As("jane")
	end := busy(ctx, t, cp, jane)
	got := jane.Get(ctx, anyMap)
	tooMany(t, got)
	t.Expect(classified(got)).To(gomega.Equal(uids), "%s", got)
	f.As("bob").Answered(ctx, anyMap, http.StatusNotFound)
	f.As("root", "system:masters").Answered(ctx, anyMap, http.StatusNotFound)
	t.Expect(end()).To(gomega.BeEquivalentTo(http.StatusNotFound), "the first request")
	jane.Until(ctx, anyMap, http.StatusNotFound, "there is a seat again")
}

func queueWaitsAndOverflows(ctx context.Context, t *suite.T) {
	cp, f, _ := seats(ctx, t, flowcontrolv1.LimitResponse{
		Type:    flowcontrolv1.LimitResponseTypeQueue,
		Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 1, HandSize: 1, QueueLengthLimit: 1},
	})
	jane := f.As("jane")
	end := busy(ctx, t, cp, jane)
	second := begin(ctx, jane, "b")
	one := "(?m)^" + f.Name + ", +1, +false, +false, +1, +1," // one in a queue, one executing
	t.Eventually(ctx, func() string {
		return string(f.Get(ctx, "/debug/api_priority_and_fairness/dump_priority_levels").Body)
	}).Should(gomega.MatchRegexp(one), "the second request is not queued")
	tooMany(t, jane.Get(ctx, anyMap))
	t.Expect(second).NotTo(gomega.Receive(), "the second request is answered, although it waits")
	f.As("bob").Answered(ctx, anyMap, http.StatusNotFound)
	t.Expect(end()).To(gomega.BeEquivalentTo(http.StatusNotFound), "the first request")
	t.Eventually(ctx, second).Should(gomega.Receive(gomega.BeEquivalentTo(http.StatusNotFound)), "the second request")
}
