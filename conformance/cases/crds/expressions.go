package crds

import (
	"context"
	"strings"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"snowglobe.test/conformance/suite"
)

var expressionCases = []suite.Case{
	{ID: "S9/CEL-values-follow-their-schema", Test: celValuesFollowTheirSchema,
		Source: "KEP-2876; k8s.io/apiserver/pkg/cel/common/valuesunstructured.go; " +
			"k8s.io/apiserver/pkg/cel/common/schemas.go",
		Promise: "To CEL a value is what its schema says: sets and maps of a list compare and join without order, " +
			"formats are times, durations and bytes, and a property's name is escaped if CEL reserves it."},
	{ID: "S9/CEL-costs-are-limited", Failure: true, Test: celCostsAreLimited,
		Source: "KEP-2876; k8s.io/apiserver/pkg/cel/library/cost.go; " +
			"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go, StaticEstimatedCostLimit",
		Promise: "A rule that may cost too much because a schema does not bound lists and texts is refused with 422, " +
			"whatever function costs it, and is accepted once they are bounded."},
}

// rules parses one rule per line. A rule that is not true has itself as the message.
func rules(text string) apiextensionsv1.ValidationRules {
	var all apiextensionsv1.ValidationRules
	for line := range strings.Lines(strings.TrimSpace(text)) {
		rule := strings.TrimSpace(line)
		all = append(all, apiextensionsv1.ValidationRule{Rule: rule, Message: "not true: " + rule})
	}
	return all
}

// valueRules are true of the value in celValuesFollowTheirSchema.
const valueRules = `
self.set == self.same && self.set != self.other
self.set + self.other == self.whole
(self.set + self.other).size() == 3
self.list != self.reversed
self.list + self.reversed == ['a', 'b', 'b', 'a']
dyn(self.map) == dyn(self.sameMap) && dyn(self.map) != dyn(self.otherMap)
(dyn(self.map) + dyn(self.otherMap)).size() == 3
(dyn(self.map) + dyn(self.otherMap)).exists(e, e.name == 'a' && e.value == 9)
self.map.filter(e, e.name == 'b')[0].value == 2
dyn(self.pairs) + dyn(self.otherPairs) == dyn(self.wholePairs)
has(self.set) && !has(self.absent)
self.time == timestamp('2000-01-31T01:02:03Z') && self.time.getHours() == 1
self.date.getDayOfMonth() == 30
self.wait == duration('90s')
self.bytes == b'snow'
'a' in self.words && !('c' in self.words) && self.words['a'] == 'x' && self.words.size() == 2
self.words.all(k, k < 'c') && self.words.map(k, self.words[k]).exists(v, v == 'y')
type(self.port) == int && type(self.name) == string && self.port == 80 && self.name == 'http'
self.number == 1.5 && self.flag && self.count == 7
!has(self.nothing)
self.__namespace__ == 'n' && self.a__dash__b == 'd' && self.x__dot__y == 'e'
self.u__underscores__v == 'f' && self.s__slash__t == 'g'
self.nested.deep[1].text == 'there'
self.embedded.kind == 'Thing' && self.embedded.metadata.name == 'inner'
self.loose.known == 'k' && !has(self.loose.absent)
`

// valueSchema is the schema of the value in celValuesFollowTheirSchema.
func valueSchema(spec *suite.Schema) {
	array := func(kind string, keys ...string) suite.Schema {
		item := suite.Schema{Type: "string"}
		if len(keys) > 0 {
			item = suite.Schema{Type: "object", Required: keys, Properties: map[string]suite.Schema{
				"name": {Type: "string"}, "kind": {Type: "string"}, "value": {Type: "integer"}}}
		}
		return suite.Schema{Type: "array", XListType: new(kind), XListMapKeys: keys, MaxItems: new(int64(9)),
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}}
	}
	text, mixed := suite.Schema{Type: "string", MaxLength: new(int64(20))}, suite.Schema{XIntOrString: true}
	deep := suite.Schema{Type: "object", Properties: map[string]suite.Schema{"text": text}}
	spec.Properties = map[string]suite.Schema{
		"set": array("set"), "same": array("set"), "other": array("set"), "whole": array("set"), "absent": array("set"),
		"list": array("atomic"), "reversed": array("atomic"),
		"map": array("map", "name"), "sameMap": array("map", "name"), "otherMap": array("map", "name"),
		"pairs": array("map", "name", "kind"), "otherPairs": array("map", "name", "kind"),
		"wholePairs": array("map", "name", "kind"),
		"time":       {Type: "string", Format: "date-time"}, "date": {Type: "string", Format: "date"},
		"wait":  {Type: "string", Format: "duration"},
		"bytes": {Type: "string", Format: "byte"},
		"words": {Type: "object", MaxProperties: new(int64(9)),
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
		"port": mixed, "name": mixed, "number": {Type: "number"}, "flag": {Type: "boolean"}, "count": {Type: "integer"},
		"nothing":   {Type: "string", Nullable: true},
		"namespace": text, "a-b": text, "x.y": text, "u__v": text, "s/t": text,
		"nested": {Type: "object", Properties: map[string]suite.Schema{"deep": {Type: "array",
			MaxItems: new(int64(9)),
			Items:    &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &deep}}}},
		"embedded": {Type: "object", XEmbeddedResource: true, XPreserveUnknownFields: new(true)},
		"loose": {Type: "object", XPreserveUnknownFields: new(true),
			Properties: map[string]suite.Schema{"known": text, "absent": text}},
	}
	spec.XValidations = rules(valueRules)
}

func celValuesFollowTheirSchema(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(valueSchema)))
	texts := func(all ...any) any { return all }
	entry := func(name string, value int64) any { return map[string]any{"name": name, "value": value} }
	pair := func(name, kind string, value int64) any {
		return map[string]any{"name": name, "kind": kind, "value": value}
	}
	value := map[string]any{
		"set": texts("a", "b"), "same": texts("b", "a"), "other": texts("b", "c"), "whole": texts("c", "a", "b"),
		"list": texts("a", "b"), "reversed": texts("b", "a"),
		"map": texts(entry("a", 1), entry("b", 2)), "sameMap": texts(entry("b", 2), entry("a", 1)),
		"otherMap":   texts(entry("c", 3), entry("a", 9)),
		"pairs":      texts(pair("a", "x", 1), pair("a", "y", 2)),
		"otherPairs": texts(pair("a", "y", 3), pair("b", "y", 4)),
		"wholePairs": texts(pair("b", "y", 4), pair("a", "x", 1), pair("a", "y", 3)),
		"time":       "2000-01-31T01:02:03Z", "date": "2000-01-31", "wait": "1m30s", "bytes": "c25vdw==",
		"words": map[string]any{"a": "x", "b": "y"}, "port": int64(80), "name": "http", "number": 1.5, "flag": true,
		"count": int64(7), "nothing": nil,
		"namespace": "n", "a-b": "d", "x.y": "e", "u__v": "f", "s/t": "g",
		"nested": map[string]any{"deep": texts(map[string]any{"text": "here"}, map[string]any{"text": "there"})},
		"embedded": map[string]any{"apiVersion": "example.com/v1", "kind": "Thing",
			"metadata": map[string]any{"name": "inner"}},
		"loose": map[string]any{"known": "k", "other": "o"},
	}
	t.Expect(suite.ErrorOf(w.TryMake(ctx, "one", suite.At(value, "spec")))).NotTo(gomega.HaveOccurred())
	broken := map[string]any{"set": texts("a", "b")}
	t.Expect(suite.ErrorOf(w.TryMake(ctx, "two", suite.At(broken, "spec")))).To(suite.BeStatus(suite.Invalid))
}

// costs are rules about a list of strings. Each costs too much if list and strings have no limits.
const costs = `
self.all(a, self.all(b, a == b))
self.all(a, a.find('a+b') == '')
self.all(a, a.findAll('a+b').size() == 0)
self.all(a, a.matches('a+b'))
self.all(a, url(a).getHost() == '')
self.all(a, self.isSorted())
self.all(a, self.indexOf(a) == 0)
self.all(a, self.max() == a)
self.all(a, isIP(a))
self.all(a, cidr(a).containsIP(ip(a)))
self.all(a, isQuantity(a))
self.all(a, quantity(a).isInteger())
self.all(a, semver(a).isLessThan(semver(a)))
self.all(a, format.dns1123Label().validate(a).hasValue())
self.all(a, a.split(',').size() == 0)
self.all(a, a.replace('a', 'b') == a)
self.all(a, a.lowerAscii() == a)
self.all(a, (a + a).contains(a))
self.all(a, sets.contains(self, [a]))
`

func celCostsAreLimited(ctx context.Context, t *suite.T) {
	definition := func(rule apiextensionsv1.ValidationRule, bound *int64) *suite.CRD {
		return t.WidgetCRD(suite.WithSpec(func(spec *suite.Schema) {
			spec.Properties["texts"] = suite.Schema{Type: "array", MaxItems: bound,
				XValidations: apiextensionsv1.ValidationRules{rule},
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &suite.Schema{Type: "string",
					MaxLength: bound}}}
		}))
	}
	for _, rule := range rules(costs) {
		_, err := t.CRDs.Create(ctx, definition(rule, nil), suite.DryRun)
		t.Expect(t.Causes(err)).To(gomega.ContainElement(gomega.HaveSuffix("x-kubernetes-validations[0].rule")),
			rule.Rule)
		t.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("estimated rule cost exceeds budget")), rule.Rule)
		_, err = t.CRDs.Create(ctx, definition(rule, new(int64(10))), suite.DryRun)
		t.Expect(err).NotTo(gomega.HaveOccurred(), rule.Rule)
	}
}
