package fault

import (
	"context"
	"testing"
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
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Add(rule); err != nil {
					b.Fatal(err)
				}
			}
			ctx := context.Background()
			namespace, name := "default", "a"
			b.ReportAllocs()
			for b.Loop() {
				_, err := s.At(ctx, func() Operation {
					return Operation{Point: "store/put", Server: "alpha", Resource: "configmaps", Namespace: namespace, Name: name, Key: "/registry/configmaps/" + namespace + "/" + name}
				})
				if err != nil {
					b.Fatal(err)
				}
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
		if n := testing.AllocsPerRun(100, func() {
			_, _ = s.At(t.Context(), func() Operation { return named(name) })
		}); n != 0 {
			t.Errorf("a %s set: %v allocations", what, n)
		}
	}
}
