package fault

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/nearest"
)

// sample is an operation of an entry, with everything the entry carries.
func sample(k *PointKind) Operation {
	op := Operation{Point: k.points(k.names(nil))[0], Phase: k.phases()[0]}
	if p := k.placeholder(); p != "" && k.Names == nil {
		op.Point = k.family() + "/some-" + p
	}
	if k.Verbs != nil {
		op.Verb = k.Verbs[0]
	}
	return op
}

func TestCatalogue(t *testing.T) {
	for _, k := range catalogue {
		t.Run(strings.Join(append([]string{k.Name}, append(slices.Clone(k.Verbs), nearest.Texts(k.Phases)...)...), " "), func(t *testing.T) {
			op := sample(k)
			if k.isPath() {
				assert.Nil(t, kindOf(&op), "there are no operations of a path")
				assert.Equal(t, []ActionKind{Partition}, k.Actions)
			} else {
				assert.Same(t, k, kindOf(&op), "an operation of the entry is of another")
				assert.Contains(t, k.Actions, Hold, "everything can be held")
			}
			assert.NotEmpty(t, k.Meaning)
			assert.NotContains(t, k.Meaning, "\n")
			assert.Equal(t, slices.Contains(k.Actions, Fail), len(k.Failures) > 0, "failures without fail, or the other way round")
			assert.Equal(t, k.Verbs != nil, slices.Contains(k.Fields, "verb"), "verbs that rules can't name, or the other way round")
			for _, f := range k.Fields {
				assert.Contains(t, identityKeys, f)
			}
			for _, a := range k.Actions {
				assert.Contains(t, actionKinds(), a)
			}
			for _, f := range k.Failures {
				assert.Error(t, f.err(op, 0), "there is no error behind %s", f)
			}
			rule, err := Parse(k.Example, nil)
			require.NoError(t, err)
			assert.Equal(t, k.Example, canonical(k.Example), "examples are written as they are printed")
			kinds, _ := rule.check(nil)
			assert.Contains(t, kinds, k, "the example is about other entries")
		})
	}
}

// canonical puts a rule's words in the order in which they are printed.
func canonical(text string) string {
	rule, err := Parse(text, nil)
	if err != nil {
		return err.Error()
	}
	words, printed := strings.Fields(text), strings.Fields(rule.String())
	slices.Sort(words)
	slices.Sort(printed)
	if slices.Equal(words, printed) {
		return text
	}
	return rule.String()
}

// Every action and every error means something somewhere, every entry with an
// error can be told from the others, and no two operations are confused.
func TestCatalogueIsComplete(t *testing.T) {
	for _, a := range actionKinds() {
		assert.True(t, slices.ContainsFunc(catalogue, func(k *PointKind) bool { return slices.Contains(k.Actions, a) }), "%s can be done nowhere", a)
	}
	for _, f := range []Failure{
		Unavailable, NoLeader, LeaderChanged, RequestTimedOut, Timeout, Compacted, TooManyRequests, InternalError, ServiceUnavailable,
		GatewayTimeout, Gone, Reset, EOF, Refused, Unreachable, Expired, Unauthorized, PlainError,
	} {
		assert.Contains(t, Failures(), f)
	}
	for _, kind := range catalogue {
		if kind.isPath() {
			continue
		}
		op, of := sample(kind), 0
		for _, k := range catalogue {
			if k.has(&op) {
				of++
			}
		}
		assert.Equal(t, 1, of, "entries of %v", op)
	}
}

func TestPointsIsACopy(t *testing.T) {
	points := Points()
	require.Len(t, points, len(catalogue))
	points[0].Actions[0], points[0].Fields[0], points[0].Name = "x", "x", "x"
	assert.NotEqual(t, points[0].Actions[0], catalogue[0].Actions[0])
	assert.NotEqual(t, points[0].Fields[0], catalogue[0].Fields[0])
	assert.NotEqual(t, points[0].Name, catalogue[0].Name)
}
