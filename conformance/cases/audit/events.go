package audit

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"snowglobe.test/conformance/suite"
)

var eventCases = []suite.Case{
	{ID: "S19/request-has-its-stages", Needs: launched, Test: requestHasItsStages,
		Source: "k8s.io/apiserver/pkg/endpoints/filters/audit.go, WithAudit",
		Promise: "A request is told of when it is received and when it is answered, a watch also when its answer " +
			"begins, all with one ID, which the answer's Audit-ID says and the client's may choose."},
	{ID: "S19/impersonated-user-is-told", Needs: launched, Test: impersonatedUserIsTold,
		Source: "k8s.io/apiserver/pkg/audit/context.go, LogImpersonatedUser; " +
			"k8s.io/apiserver/pkg/endpoints/filters/impersonation",
		Promise: "The event of an impersonated request names who asked and whom he impersonated, and the policy is " +
			"about who asked."},
	{ID: "S19/refusal-is-told", Failure: true, Needs: launched, Test: refusalIsTold,
		Source: "k8s.io/apiserver/pkg/endpoints/filters/authn_audit.go, WithFailedAuthenticationAudit; " +
			"k8s.io/apiserver/pkg/endpoints/filters/authorization.go",
		Promise: "A request that is refused is told of: a 401 without a user, a 403 with the decision and its " +
			"reason, and what is allowed with that too."},
	{ID: "S19/admission-annotates", Needs: launched, Test: admissionAnnotates,
		Source: "KEP-3488 and KEP-2579; k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go, " +
			"publishValidationFailureAnnotations; k8s.io/pod-security-admission/admission/admission.go",
		Promise: "What the audit action of a policy and the audit level of pod security find is an annotation of the " +
			"event, and the request goes on."},
}

const everything = `
rules:
- {level: None, users: ["system:apiserver"]}
- {level: Metadata}
`

func requestHasItsStages(ctx context.Context, t *suite.T) {
	a := launch(ctx, t, everything, blocking)
	const get = "/api/v1/namespaces/default/configmaps/a"
	got := a.Ask(ctx, suite.Request{Path: get, Header: map[string]string{"Audit-ID": "chosen"}})
	a.Expect(got.Header.Get("Audit-ID")).To(gomega.Equal("chosen"), "%s", got)
	events := a.about(get)
	a.Expect(told(events)).To(gomega.Equal([]string{"RequestReceived Metadata get", "ResponseComplete Metadata get"}))
	a.Expect(events[0].ResponseStatus).To(gomega.BeNil(), "when it is received")
	a.Expect(events[1].ResponseStatus).
		To(gomega.HaveValue(gomega.And(gomega.HaveField("Code", gomega.BeEquivalentTo(http.StatusNotFound)),
			gomega.HaveField("Reason", metav1.StatusReasonNotFound))))
	a.Expect(events[1].StageTimestamp.Before(&events[0].RequestReceivedTimestamp)).
		To(gomega.BeFalse(), "the times of its stages")
	for _, event := range events {
		a.Expect(event.AuditID).To(gomega.BeEquivalentTo("chosen"))
		a.Expect(event.SourceIPs).NotTo(gomega.BeEmpty(), "sourceIPs")
		a.Expect(event.UserAgent).To(gomega.ContainSubstring("snowglobe-conformance/S19/request-has-its-stages"))
	}
	a.watched(ctx, "secrets")
	a.Expect(told(a.about("/default/secrets?"))).To(gomega.Equal([]string{
		"RequestReceived Metadata watch", "ResponseStarted Metadata watch", "ResponseComplete Metadata watch"}))
}

func impersonatedUserIsTold(ctx context.Context, t *suite.T) {
	a := launch(ctx, t, `
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: [jane]}
- {level: Request, users: [snowglobe-admin]}
`, blocking)
	const path = "/api/v1/namespaces/default/configmaps/a"
	a.As("jane", "painters").Answered(ctx, path, http.StatusForbidden)
	event := a.one(path)
	a.Expect(event.Level).To(gomega.Equal(auditv1.LevelRequest), "the rule is that of who asked")
	a.Expect(event.User.Username).To(gomega.Equal("snowglobe-admin"))
	a.Expect(event.User.Groups).To(gomega.ContainElement("system:masters"))
	a.Expect(event.ImpersonatedUser).To(gomega.HaveValue(gomega.And(gomega.HaveField("Username", "jane"),
		gomega.HaveField("Groups", []string{"painters", "system:authenticated"}))))
}

func refusalIsTold(ctx context.Context, t *suite.T) {
	a := launch(ctx, t, everything, blocking)
	const path = "/api/v1/namespaces/default/configmaps/"
	a.WithToken("no-such-token").Answered(ctx, path+"unknown", http.StatusUnauthorized)
	a.As("jane").Answered(ctx, path+"forbidden", http.StatusForbidden)
	a.Answered(ctx, path+"allowed", http.StatusNotFound)

	unknown := a.about(path + "unknown")
	a.Expect(told(unknown)).To(gomega.Equal([]string{"ResponseStarted Metadata get"}))
	last := unknown[0]
	a.Expect(last.ResponseStatus).
		To(gomega.HaveValue(gomega.And(gomega.HaveField("Code", gomega.BeEquivalentTo(http.StatusUnauthorized)),
			gomega.HaveField("Reason", metav1.StatusReasonUnauthorized))))
	a.Expect(last.User.Username).To(gomega.BeEmpty(), "nobody is known to have asked")

	a.Expect(a.last(path + "forbidden").ResponseStatus).
		To(gomega.HaveValue(gomega.HaveField("Code", gomega.BeEquivalentTo(http.StatusForbidden))))
	for name, decision := range map[string]string{"forbidden": "forbid", "allowed": "allow"} {
		a.Expect(a.last(path+name).Annotations).
			To(gomega.And(gomega.HaveKeyWithValue("authorization.k8s.io/decision", decision),
				gomega.HaveKey("authorization.k8s.io/reason")), name)
	}
}

// last returns the last event about a URI.
func (a *auditor) last(uri string) auditv1.Event {
	events := a.about(uri)
	a.Expect(events).NotTo(gomega.BeEmpty(), "events about %s", uri)
	return events[len(events)-1]
}

func admissionAnnotates(ctx context.Context, t *suite.T) {
	a := launch(ctx, t, everything, blocking)
	maps := a.ConfigMaps(ctx)
	a.policy(ctx)
	made := func() map[string]string {
		a.Must(a.dry(ctx, maps), "create")
		return a.last("/configmaps").Annotations
	}
	a.Eventually(ctx, made).Should(gomega.HaveKeyWithValue(a.Name+"/size", "size is 7"), "the annotation of the policy")
	a.Expect(made()["validation.policy.admission.k8s.io/validation_failure"]).To(gomega.MatchJSON(fmt.Sprintf(
		`[{"message": "never", "policy": %q, "binding": %q, "expressionIndex": 0, "validationActions": ["Audit"]}]`,
		a.Name, a.Name)))

	namespace := suite.Get(ctx, a.T, a.Kube.CoreV1().Namespaces().Get, maps.Namespace)
	namespace.Labels["pod-security.kubernetes.io/audit"] = "restricted"
	suite.Update(ctx, a.T, a.Kube.CoreV1().Namespaces().Update, namespace)
	podded := func() map[string]string {
		_, err := a.Kube.CoreV1().Pods(maps.Namespace).Create(ctx, suite.Pod("a", "c"), suite.DryRun)
		a.Must(err, "create a pod")
		return a.last("/pods").Annotations
	}
	a.Eventually(ctx, podded).Should(gomega.HaveKeyWithValue("pod-security.kubernetes.io/audit-violations",
		gomega.HavePrefix(`would violate PodSecurity "restricted:latest": `)))
	a.Expect(podded()).To(gomega.HaveKeyWithValue("pod-security.kubernetes.io/enforce-policy", "privileged:latest"))
}

// dry makes a ConfigMap as a dry run.
func (a *auditor) dry(ctx context.Context, maps *suite.ConfigMaps) error {
	object := maps.Object("a", "first")
	object.Data["size"] = "7"
	return suite.ErrorOf(maps.Create(ctx, object, suite.DryRun))
}

// policy makes one that is violated by every ConfigMap with a size, and only tells of it.
func (a *auditor) policy(ctx context.Context) {
	client := a.Kube.AdmissionregistrationV1()
	suite.Create(ctx, a.T, client.ValidatingAdmissionPolicies().Create, &registrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name},
		Spec: registrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &registrationv1.MatchResources{ResourceRules: []registrationv1.NamedRuleWithOperations{{
				RuleWithOperations: suite.WebhookRule("", "v1", "configmaps", registrationv1.Create),
			}}},
			Validations: []registrationv1.Validation{{Expression: "!has(object.data.size)", Message: "never"}},
			AuditAnnotations: []registrationv1.AuditAnnotation{{Key: "size",
				ValueExpression: "has(object.data.size) ? 'size is ' + object.data.size : ''"}},
		},
	})
	suite.Create(ctx, a.T, client.ValidatingAdmissionPolicyBindings().Create,
		&registrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: a.Name},
			Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: a.Name, ValidationActions: []registrationv1.ValidationAction{registrationv1.Audit}},
		})
}
