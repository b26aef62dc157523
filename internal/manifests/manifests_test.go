package manifests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCut cuts files as people keep them.
func TestCut(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"one":             {"a: 1\n", "1:document 1:a: 1"},
		"none":            {"", "1:document 1:"},
		"documents":       {"# first\n---\na: 1\n--- # second\nb: 2\n", "1:document 1:# first|3:document 2:a: 1|5:document 3:b: 2"},
		"not a separator": {"a: |\n  ---x\n---x: 1\n", "1:document 1:a: |\n  ---x\n---x: 1"},
		"JSON":            {"{\"a\": 1}\n{\"b\": 2} {\"c\": 3}\n", `1:document 1:{"a": 1}|2:document 2:{"b": 2}|2:document 3:{"c": 3}`},
		"JSON and YAML":   {"{\"a\": 1}\n---\nb: 2\n", `1:document 1:{"a": 1}|3:document 2:b: 2`},
		"broken JSON":     {"{\"a\": 1}\n{\"b\": \n", `1:document 1:{"a": 1}|1:document 2:{"b":`},
		"a YAML map":      {"{a: 1}\n", "1:document 1:{a: 1}"},
		"List":            {"a: 1\n---\napiVersion: v1\nkind: List\nitems: [{b: 2}, {c: 3}]\n", `1:document 1:a: 1|3:document 2, item 1:{"b":2}|3:document 2, item 2:{"c":3}`},
		"List of JSON":    {`{"kind": "List", "apiVersion": "v1", "items": [{"b": 2}]}`, `1:document 1, item 1:{"b":2}`},
		"another List":    {"apiVersion: example.com/v1\nkind: List\nitems: [{b: 2}]\n", "1:document 1:apiVersion: example.com/v1\nkind: List\nitems: [{b: 2}]"},
	} {
		var got []string
		for _, o := range Cut(c.text) {
			got = append(got, fmt.Sprintf("%d:%s:%s", o.Line, o.Place(), strings.TrimSpace(o.Text)))
		}
		assert.Equal(t, c.want, strings.Join(got, "|"), name)
	}
}

// BenchmarkCut cuts files of a thousand lines and of a hundred thousand: the time per line is the
// same.
func BenchmarkCut(b *testing.B) {
	for _, lines := range []int{1_000, 100_000} {
		text := "kind: CustomResourceDefinition\n" + strings.Repeat("  description: a line of a schema, as long as those are\n", lines)
		b.Run(fmt.Sprintf("%d lines", lines), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Cut(text)
			}
		})
	}
}
