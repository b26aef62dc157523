package fault

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// BenchmarkAt is what a point costs: without rules it must be nanoseconds, and
// allocate nothing.
func BenchmarkAt(b *testing.B) {
	for _, bench := range []struct {
		name  string
		rules []string
	}{
		{"none", nil},
		{"elsewhere", []string{"hold hook/start-apiextensions-informers"}},
		{"other", []string{"fail store/put resource=configmaps name=default/b with=unavailable"}},
		{"fires", []string{"drop store/put"}},
		{"hundred", hundred()},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := New(Config{})
			for _, text := range bench.rules {
				rule, err := Parse(text, nil)
				require.NoError(b, err)
				_, err = s.Add(rule)
				require.NoError(b, err)
			}
			ctx := context.Background()
			namespace, name := "default", "a"
			b.ReportAllocs()
			for b.Loop() {
				_, err := s.At(ctx, func() Operation {
					return Operation{Point: "store/put", Server: "alpha", Resource: "configmaps", Namespace: namespace, Name: name, Key: "/registry/configmaps/" + namespace + "/" + name}
				})
				require.NoError(b, err)
			}
		})
	}
}

func hundred() []string {
	rules := make([]string, 100)
	for i := range rules {
		rules[i] = "fail store/put resource=pods every=3 with=unavailable"
	}
	return rules
}

// TestAtCostsNothing is the part of it that can't be slow by chance.
func TestAtCostsNothing(t *testing.T) {
	for what, s := range map[string]*Set{"nil": nil, "empty": New(Config{})} {
		name := "a"
		assert.Equal(t, float64(0), testing.AllocsPerRun(100, func() {
			_, _ = s.At(t.Context(), func() Operation { return named(name) })
		}), "a %s set", what)
	}
}
