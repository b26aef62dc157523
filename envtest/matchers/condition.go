package matchers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// HaveCondition matches an object with a condition of this type and status in its
// status.conditions. With reasons, the condition's reason must be one of them. The
// conditions may be metav1.Condition or a kind's own, such as corev1.PodCondition:
//
//	Expect(pod).To(HaveCondition(corev1.PodReady, corev1.ConditionTrue))
//	Expect(snowfall).To(HaveCondition("Ready", metav1.ConditionFalse, "TooWarm"))
func HaveCondition[T, S ~string](conditionType T, status S, reason ...string) types.GomegaMatcher {
	expected := fmt.Sprintf("have condition %s=%s", conditionType, status)
	if len(reason) > 0 {
		expected += ", reason " + strings.Join(reason, " or ")
	}
	return objectMatcher{
		expected: expected,
		match: func(o object) (bool, error) {
			conditions, err := conditionsOf(o)
			return slices.ContainsFunc(conditions, func(c condition) bool {
				return c.text("type") == string(conditionType) && c.text("status") == string(status) &&
					(len(reason) == 0 || slices.Contains(reason, c.text("reason")))
			}), err
		},
		found: func(o object) string {
			conditions, err := conditionsOf(o)
			if err != nil { // match has returned it
				return err.Error()
			}
			var lines []string
			for _, c := range conditions {
				lines = append(lines, c.String())
			}
			return list("conditions", lines)
		},
	}
}

// condition is one as it is in JSON, where those of all kinds look the same.
type condition map[string]any

func (c condition) text(field string) string {
	text, _ := c[field].(string)
	return text
}

func (c condition) String() string {
	line := fmt.Sprintf("%s=%s", c.text("type"), c.text("status"))
	if reason := c.text("reason"); reason != "" {
		line += ", reason " + reason
	}
	if message := c.text("message"); message != "" {
		line += ": " + message
	}
	return line
}

// conditionsOf returns an object's conditions; none if it has no status yet.
func conditionsOf(o object) ([]condition, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("read the conditions of %s: %w", describe(o), err)
	}
	field, _, err := unstructured.NestedFieldNoCopy(content, "status", "conditions")
	if err != nil {
		return nil, fmt.Errorf("read the conditions of %s: %w", describe(o), err)
	}
	if field == nil {
		return nil, nil
	}
	elements, ok := field.([]any)
	if !ok {
		return nil, fmt.Errorf("status.conditions of %s is a %T: want a list", describe(o), field)
	}
	var conditions []condition
	for i, element := range elements {
		c, ok := element.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("status.conditions[%d] of %s is a %T: want a condition", i, describe(o), element)
		}
		conditions = append(conditions, c)
	}
	return conditions, nil
}
