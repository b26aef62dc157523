package scenarios

import (
	"slices"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"configmaps", "controllerrevisions", "crd-informer-synced", "pods", "podtemplates", "start-apiextensions-informers"}
	for name, want := range map[string][]string{
		"configmap":           {"configmaps"},
		"cofnigmaps":          {"configmaps"},
		"crd-informers-sync":  {"crd-informer-synced"},
		"crd-informer":        {"crd-informer-synced"},
		"pod":                 {"pods"},
		"POD":                 {"pods"},
		"nothing-of-the-kind": nil,
		"":                    nil,
	} {
		if got := nearest(name, known); !slices.Equal(got, want) {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"ab", "ba", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
