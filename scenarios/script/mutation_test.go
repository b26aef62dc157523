package script

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestMutationMistakes are mutations that would prove nothing.
func TestMutationMistakes(t *testing.T) {
	for name, c := range map[string]struct{ mutation, want string }{
		"no name":          {"- remove: start", "it needs a name"},
		"nothing":          {"- name: a", "exactly one of insert, remove, replace and answer"},
		"two at once":      {"- {name: a, remove: start, replace: b}", "exactly one of"},
		"insert anywhere":  {"- {name: a, insert: ready}", "insert and after belong together"},
		"nothing matches":  {"- {name: a, remove: restart}", `x.txtar: mutation "a": nothing matches "restart"`},
		"comments matched": {"- {name: a, remove: comment}", `nothing matches "comment"`},
		"wrong pattern":    {"- {name: a, remove: (}", "missing closing )"},
		"unknown field":    {"- {name: a, removes: start}", `unknown field "removes"`},
	} {
		t.Run(name, func(t *testing.T) {
			text := "# A comment.\nstart\n-- mutations.yaml --\n" + c.mutation + "\n"
			_, err := Parse("x.txtar", []byte(text)).Mutations()
			assert.ErrorContains(t, err, c.want)
		})
	}
}
