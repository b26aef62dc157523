package subset

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		is, want string
		found    []string
	}{
		"a part":          {"{a: 1, b: {c: x, d: y}}", "{b: {c: x}}", nil},
		"integers":        {"{a: 1}", "{a: 1.0}", nil},
		"another value":   {"{a: {b: x}}", "{a: {b: z}}", []string{`a.b is "x", want "z"`}},
		"missing":         {"{a: {}}", "{a: {b: z}}", []string{`a.b is missing, want "z"`}},
		"sorted":          {"{}", "{c: 1, a: 2}", []string{"a is missing, want 2", "c is missing, want 1"}},
		"another kind":    {"{a: [x]}", "{a: {b: x}}", []string{"a is [x], want map[b:x]"}},
		"no list":         {"{a: {b: x}}", "{a: [x]}", []string{"a is map[b:x], want [x]"}},
		"a list":          {"{a: [{b: 1, c: 2}, {b: 3}]}", "{a: [{b: 1}, {b: 3}]}", nil},
		"an element":      {"{a: [{b: 1}, {b: 3}]}", "{a: [{b: 1}, {b: 4}]}", []string{"a[1].b is 3, want 4"}},
		"too long":        {"{a: [1, 2]}", "{a: [1]}", []string{"a has 2 elements, want 1"}},
		"long enough":     {"{a: [1, 2]}", "{a: [1, ...]}", nil},
		"too short":       {"{a: [1]}", "{a: [1, 2, ...]}", []string{"a has 1 elements, want 2"}},
		"null":            {"{a: null}", "{a: null}", nil},
		"not null":        {"{a: 1}", "{a: null}", []string{"a is 1, want <nil>"}},
		"text, no number": {`{a: "1"}`, "{a: 1}", []string{`a is "1", want 1`}},
	} {
		t.Run(name, func(t *testing.T) {
			var is, want any
			for text, into := range map[string]*any{c.is: &is, c.want: &want} {
				require.NoError(t, yaml.Unmarshal([]byte(text), into))
			}
			if c.is == c.want {
				want = is
			}
			found := Differences(is, want)
			assert.True(t, slices.Equal(found, c.found), "%q, want %q", found, c.found)
		})
	}
}
