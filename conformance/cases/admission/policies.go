package admission

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"snowglobe.test/conformance/suite"
)

var policyCases = []suite.Case{
	{ID: "S9/policy-validates", Level: suite.Core, Test: policyValidates,
		Source: "KEP-3488; k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go, Validate, and " +
			"dispatcher.go",
		Promise: "A request that a bound ValidatingAdmissionPolicy finds false is answered with its reason and " +
			"message, its messageExpression before its message, and 422 Invalid by default; variables are at hand."},
	{ID: "S9/policy-reads-its-params", Level: suite.Core, Failure: true, Test: policyReadsItsParams,
		Source: "KEP-3488; k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go, CollectParams",
		Promise: "A policy decides by the object that its binding names, as it is now; if there is none, " +
			"parameterNotFoundAction denies the request or leaves the policy out."},
	{ID: "S9/policy-warns", Level: suite.Core, Test: policyWarns,
		Source: "KEP-3488; k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go: validationActions",
		Promise: "With the validation action Warn a violation is a Warning header that names policy and binding, and " +
			"the request goes on."},
	{ID: "S9/policy-applies-where-it-is-bound", Level: suite.Core, Test: policyAppliesWhereItIsBound,
		Source: "KEP-3488; k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_matcher.go",
		Promise: "A policy applies where both its own constraints and its binding's match, its match conditions " +
			"hold, and nowhere without a binding."},
	{ID: "S9/policy-failure-policy", Level: suite.Core, Failure: true, Test: policyFailurePolicy,
		Source: "KEP-3488; k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go, " +
			"policyDecisionActionForError",
		Promise: "An expression that fails denies the request with failurePolicy Fail, and is passed over " +
			"with Ignore."},
	{ID: "S9/broken-policy-is-refused", Level: suite.Core, Failure: true, Test: brokenPolicyIsRefused,
		Source: "KEP-3488; k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go",
		Promise: "A policy whose expression does not compile or is not a bool, or whose binding names no action or " +
			"Deny and Warn at once, is refused with 422."},
	{ID: "S9/mutating-policy-changes-the-object", Gates: []string{"MutatingAdmissionPolicy"},
		Test:   mutatingPolicyChangesTheObject,
		Source: "KEP-3962; k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go and patch",
		Promise: "A bound MutatingAdmissionPolicy changes the object by its mutations, an apply configuration or a " +
			"JSON patch, in their order, before it is validated and stored."},
}

// policies are the admission policies of a case, about the ConfigMaps of its namespace.
type policies struct {
	*suite.T
	maps *suite.ConfigMaps
}

func newPolicies(ctx context.Context, t *suite.T) *policies {
	return &policies{t, t.ConfigMaps(ctx)}
}

type (
	policy  = registrationv1.ValidatingAdmissionPolicy
	binding = registrationv1.ValidatingAdmissionPolicyBinding
)

// name is the full name of a policy and of its binding.
func (p *policies) name(short string) string { return p.Name + "-" + short }

// made matches the creation of ConfigMaps.
func made() *registrationv1.MatchResources {
	return &registrationv1.MatchResources{ResourceRules: []registrationv1.NamedRuleWithOperations{{
		RuleWithOperations: suite.WebhookRule("", "v1", "configmaps", registrationv1.Create),
	}}}
}

// here matches the case's namespace.
func (p *policies) here() *registrationv1.MatchResources {
	return &registrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{corev1.LabelMetadataName: p.maps.Namespace}}}
}

// policy returns a policy with these validations for created ConfigMaps. It does not create it.
func (p *policies) policy(short string, validations ...registrationv1.Validation) *policy {
	return &policy{
		ObjectMeta: metav1.ObjectMeta{Name: p.name(short)},
		Spec:       registrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: made(), Validations: validations},
	}
}

// create creates a policy, which is removed when the case ends.
func (p *policies) create(ctx context.Context, object *policy) {
	client := p.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	suite.Create(ctx, p.T, client.Create, object)
}

// binding returns a binding of a policy to the case's namespace. It does not create it.
func (p *policies) binding(short string) *binding {
	return &binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.name(short)},
		Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: p.name(short), MatchResources: p.here(),
			ValidationActions: []registrationv1.ValidationAction{registrationv1.Deny},
		},
	}
}

// bind creates a binding, which is removed when the case ends.
func (p *policies) bind(ctx context.Context, object *binding) {
	client := p.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	suite.Create(ctx, p.T, client.Create, object)
}

// object is a ConfigMap with a size and a color.
func (p *policies) object(name, size, color string) *corev1.ConfigMap {
	object := p.maps.Object(name, "first")
	if size != "" {
		object.Data["size"] = size
	}
	if color != "" {
		object.Labels["color"] = color
	}
	return object
}

// post makes a ConfigMap, as a dry run, and returns the whole answer.
func (p *policies) post(ctx context.Context, object *corev1.ConfigMap) suite.Answer {
	return p.Ask(ctx, suite.Request{Method: http.MethodPost, Path: p.maps.Path() + "?dryRun=All", Body: object})
}

// inForce waits until the body or a warning of an answer has a text. The server learns of policies
// from watches and by a timer.
func (p *policies) inForce(ctx context.Context, object *corev1.ConfigMap, says string) {
	p.Eventually(ctx, func() string {
		got := p.post(ctx, object)
		return fmt.Sprint(string(got.Body), got.Header.Values("Warning"))
	}).Should(gomega.ContainSubstring(says), "the policy is not in force")
}

// allowed asserts that nothing denies a ConfigMap.
func (p *policies) allowed(ctx context.Context, object *corev1.ConfigMap) suite.Answer {
	return p.ExpectCode(p.post(ctx, object), http.StatusCreated)
}

// denied asserts that a policy denies a ConfigMap.
func (p *policies) denied(ctx context.Context, short string, object *corev1.ConfigMap, as suite.Refusal,
	message string) {
	status := p.ExpectStatus(p.post(ctx, object), as)
	said := fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", p.name(short),
		p.name(short), message)
	p.Expect(status.Message).To(gomega.Equal(fmt.Sprintf("configmaps %q is forbidden: %s", object.Name, said)))
	p.Expect(status.Details.Causes).To(gomega.Equal([]metav1.StatusCause{{Message: said}}))
}

// invalid asserts that a policy denies a ConfigMap for the default reason.
func (p *policies) invalid(ctx context.Context, short string, object *corev1.ConfigMap, message string) {
	p.denied(ctx, short, object, suite.Invalid, message)
}

func policyValidates(ctx context.Context, t *suite.T) {
	p := newPolicies(ctx, t)
	object := p.policy("v",
		registrationv1.Validation{Expression: "variables.twice <= 10",
			MessageExpression: "'twice is ' + string(variables.twice)", Message: "unused"},
		registrationv1.Validation{Expression: "object.metadata.name != 'forbidden'", Message: "not that name",
			Reason: new(metav1.StatusReasonForbidden)},
		registrationv1.Validation{Expression: "object.metadata.name != 'silent'"},
		registrationv1.Validation{Expression: "object.metadata.name != 'blank'", Message: "the message",
			MessageExpression: "'  '"},
	)
	object.Spec.Variables = []registrationv1.Variable{
		{Name: "size", Expression: "int(object.data.size)"},
		{Name: "twice", Expression: "variables.size * 2"},
	}
	p.create(ctx, object)
	p.bind(ctx, p.binding("v"))
	p.inForce(ctx, p.object("a", "6", ""), "denied request")
	p.allowed(ctx, p.object("a", "5", ""))
	p.invalid(ctx, "v", p.object("a", "6", ""), "twice is 12")
	p.denied(ctx, "v", p.object("forbidden", "5", ""), suite.Forbidden, "not that name")
	p.invalid(ctx, "v", p.object("silent", "5", ""), "failed expression: object.metadata.name != 'silent'")
	p.invalid(ctx, "v", p.object("blank", "5", ""), "the message")
	p.invalid(ctx, "v", p.object("forbidden", "6", ""), "twice is 12") // the first decides
}

func policyReadsItsParams(ctx context.Context, t *suite.T) {
	p := newPolicies(ctx, t)
	limit := p.object("limit", "3", "")
	p.maps.MustCreate(ctx, limit)
	object := p.policy("p", registrationv1.Validation{
		Expression: "int(object.data.size) <= " +
			"int(params.data.size)", MessageExpression: "'at most ' + params.data.size"})
	object.Spec.ParamKind = &registrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	p.create(ctx, object)
	for color, ref := range map[string]registrationv1.ParamRef{
		"red":   {Name: "limit", ParameterNotFoundAction: new(registrationv1.DenyAction)},
		"green": {Name: "nothing", ParameterNotFoundAction: new(registrationv1.AllowAction)},
		"blue":  {Name: "nothing", ParameterNotFoundAction: new(registrationv1.DenyAction)},
	} {
		bound := p.binding("p")
		bound.Name = p.name(color)
		bound.Spec.ParamRef = &ref
		bound.Spec.MatchResources.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"color": color}}
		p.bind(ctx, bound)
	}
	p.inForce(ctx, p.object("a", "4", "red"), p.name("red")+"' denied request: at most 3")
	p.inForce(ctx, p.object("a", "4", "blue"), p.name("blue")+"' denied request: failed to configure binding: no "+
		"params found for policy binding with `Deny` parameterNotFoundAction")
	p.allowed(ctx, p.object("a", "3", "red"))
	p.allowed(ctx, p.object("a", "4", "green"))
	p.allowed(ctx, p.object("a", "4", ""))

	limit.Data["size"] = "9"
	suite.Update(ctx, p.T, p.maps.Update, limit)
	p.inForce(ctx, p.object("a", "10", "red"), "denied request: at most 9")
	p.allowed(ctx, p.object("a", "4", "red"))
}

func policyWarns(ctx context.Context, t *suite.T) {
	p := newPolicies(ctx, t)
	p.create(ctx, p.policy("w", registrationv1.Validation{Expression: "object.metadata.name != 'odd'",
		Message: "that is odd"}))
	bound := p.binding("w")
	bound.Spec.ValidationActions = []registrationv1.ValidationAction{registrationv1.Warn, registrationv1.Audit}
	p.bind(ctx, bound)
	p.inForce(ctx, p.object("odd", "", ""), "that is odd")
	warning := fmt.Sprintf(`299 - "Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': that is `+
		`odd"`, p.name("w"), p.name("w"))
	p.Expect(p.allowed(ctx, p.object("odd", "", "")).Header.Values("Warning")).To(gomega.Equal([]string{warning}))
	p.Expect(p.allowed(ctx, p.object("even", "", "")).Header.Values("Warning")).To(gomega.BeEmpty())
}

// without selects what has another value of a label, or none.
func without(label, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: label, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}},
	}}
}

func policyAppliesWhereItIsBound(ctx context.Context, t *suite.T) {
	p := newPolicies(ctx, t)
	never := registrationv1.Validation{Expression: "false", Message: "never"}
	p.create(ctx, p.policy("unbound", never))
	object := p.policy("bound", never)
	object.Spec.MatchConditions = []registrationv1.MatchCondition{{Name: "loud",
		Expression: "object.metadata.name != 'quiet'"}}
	object.Spec.MatchConstraints.ObjectSelector = without("color", "grey")
	object.Spec.MatchConstraints.ExcludeResourceRules = []registrationv1.NamedRuleWithOperations{{
		ResourceNames: []string{"excluded"}, RuleWithOperations: suite.WebhookRule("", "v1", "configmaps",
			registrationv1.OperationAll)}}
	p.create(ctx, object)
	bound := p.binding("bound")
	bound.Spec.MatchResources.ObjectSelector = without("color", "white")
	p.bind(ctx, bound)

	p.inForce(ctx, p.object("a", "", "red"), "denied request")
	p.invalid(ctx, "bound", p.object("a", "", ""), "never")
	for _, left := range []*corev1.ConfigMap{
		p.object("a", "", "grey"), p.object("a", "", "white"), p.object("quiet", "", "red"),
		p.object("excluded", "", "red"),
	} {
		p.allowed(ctx, left)
	}
	elsewhere := p.object("a", "", "red")
	_, err := p.Kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, elsewhere, suite.DryRun)
	p.Expect(err).NotTo(gomega.HaveOccurred(), "another namespace is not bound")
}

func policyFailurePolicy(ctx context.Context, t *suite.T) {
	p := newPolicies(ctx, t)
	for short, policy := range map[string]registrationv1.FailurePolicyType{"fail": registrationv1.Fail,
		"ignore": registrationv1.Ignore} {
		object := p.policy(short,
			registrationv1.Validation{Expression: "object.metadata.name != '" + short + "'", Message: "by name"},
			registrationv1.Validation{Expression: "object.data.missing == 'x'"})
		object.Spec.FailurePolicy = &policy
		object.Spec.MatchConstraints.ObjectSelector = metav1.SetAsLabelSelector(labels.Set{"color": short})
		p.create(ctx, object)
		p.bind(ctx, p.binding(short))
		p.inForce(ctx, p.object(short, "", short), "denied request: by name")
	}
	p.invalid(ctx, "fail", p.object("a", "", "fail"),
		"expression 'object.data.missing == 'x'' resulted in error: no such key: missing")
	p.allowed(ctx, p.object("a", "", "ignore"))
}

func brokenPolicyIsRefused(ctx context.Context, t *suite.T) {
	p := newPolicies(ctx, t)
	for _, expression := range []string{"object.metadata.", "'a string'", "nothing.size > 1"} {
		_, err := p.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx,
			p.policy("x", registrationv1.Validation{Expression: expression}), metav1.CreateOptions{})
		p.Expect(p.Causes(err)).To(gomega.Equal([]string{"spec.validations[0].expression"}), "expression %s",
			expression)
	}
	for _, actions := range [][]registrationv1.ValidationAction{{}, {registrationv1.Deny, registrationv1.Warn},
		{registrationv1.Deny, registrationv1.Deny}} {
		bound := p.binding("x")
		bound.Spec.ValidationActions = actions
		_, err := p.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().
			Create(ctx, bound, metav1.CreateOptions{})
		p.Expect(p.Causes(err)).To(gomega.ContainElement(gomega.HavePrefix("spec.validationActions")), "actions %v",
			actions)
	}
}

func mutatingPolicyChangesTheObject(ctx context.Context, t *suite.T) {
	p := newPolicies(ctx, t)
	object := &registrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: p.name("m")},
		Spec: registrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: made(), ReinvocationPolicy: registrationv1.NeverReinvocationPolicy,
			MatchConditions: []registrationv1.MatchCondition{{Name: "colored",
				Expression: "has(object.metadata.labels.color)"}},
			Mutations: []registrationv1.Mutation{
				{PatchType: registrationv1.PatchTypeApplyConfiguration,
					ApplyConfiguration: &registrationv1.ApplyConfiguration{
						Expression: `Object{data: {"size": object.metadata.labels.color}}`}},
				{PatchType: registrationv1.PatchTypeJSONPatch, JSONPatch: &registrationv1.JSONPatch{
					Expression: `[JSONPatch{op: "add", path: "/data/twice", value: object.data.size + ` +
						`object.data.size}]`}},
			},
		},
	}
	bound := &registrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: p.name("m")},
		Spec: registrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: object.Name,
			MatchResources: p.here()},
	}
	client := p.Kube.AdmissionregistrationV1()
	suite.Create(ctx, p.T, client.MutatingAdmissionPolicies().Create, object)
	suite.Create(ctx, p.T, client.MutatingAdmissionPolicyBindings().Create, bound)

	p.inForce(ctx, p.object("a", "", "red"), `"size":"red"`)
	made := p.maps.MustCreate(ctx, p.object("a", "", "red"))
	want := map[string]string{"content": "first", "size": "red", "twice": "redred"}
	p.Expect(made.Data).To(gomega.Equal(want))
	p.Expect(p.maps.Read(ctx, "a").Data).To(gomega.Equal(want), "what is stored")
	p.Expect(p.maps.MustCreate(ctx, p.object("b", "", "")).Data).To(gomega.Equal(map[string]string{"content": "first"}),
		"what the policy is not about")
}
