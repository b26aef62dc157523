package scenarios

import (
	"flag"
	"strings"
	"testing"
)

var allMutations = flag.Bool("all-mutations", false, "try all mutations of the library's scripts, not the first of each third")

// TestLibraryNotices breaks what each third script of the library demonstrates, in the
// first way that the script lists, or with -all-mutations what each does, in every way. A
// script that still passes demonstrates nothing.
func TestLibraryNotices(t *testing.T) {
	for i, script := range Library() {
		mutations, err := script.Mutations()
		if err != nil {
			t.Fatal(err)
		}
		if len(mutations) == 0 {
			t.Errorf("%s has no mutation: nothing proves that it can fail", script.Name)
		}
		if !*allMutations {
			if i%3 != 0 {
				continue
			}
			mutations = mutations[:min(len(mutations), 1)]
		}
		for _, mutation := range mutations {
			t.Run(script.Name+"/"+mutation.Name, func(t *testing.T) {
				mutated, err := script.Mutate(mutation)
				if err != nil {
					t.Fatal(err)
				}
				if !mutated.alone() {
					t.Parallel()
				}
				result := mutated.Run(t.Context(), Options{})
				if result.Status != Failed {
					t.Fatalf("%s, though what it demonstrates was broken\n%s", result.Status, transcript(result))
				}
				if !strings.HasPrefix(result.Err.Error(), script.File+":") {
					t.Errorf("the failure does not say where it is: %v", result.Err)
				}
				t.Logf("as it should: %v", result.Err)
			})
		}
	}
}

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
			script := scriptOf("# A comment.\nstart\n-- mutations.yaml --\n" + c.mutation + "\n")
			if _, err := script.Mutations(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
