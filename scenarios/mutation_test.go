package scenarios

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/sample"
)

// TestLibraryNotices breaks what each twelfth script of the library demonstrates, in the first of
// the ways that the script lists, or with -all what each does, in every way. A script that still
// passes demonstrates nothing.
func TestLibraryNotices(t *testing.T) {
	for i, one := range Library() {
		mutations, err := one.Mutations()
		require.NoError(t, err)
		assert.NotEmpty(t, mutations, "%s has no mutation: nothing proves that it can fail", one.Name)
		if !sample.Has(i, 12) || len(mutations) == 0 {
			continue
		}
		if !sample.All() {
			mutations = mutations[:1]
		}
		for _, mutation := range mutations {
			t.Run(one.Name+"/"+mutation.Name, func(t *testing.T) {
				mutated, err := one.Mutate(mutation)
				require.NoError(t, err)
				if !alone(mutated) {
					t.Parallel()
				}
				result := Run(t.Context(), mutated, Options{})
				if result.Status != Failed {
					t.Fatalf("%s, though what it demonstrates was broken\n%s", result.Status, transcript(result))
				}
				assert.True(t, strings.HasPrefix(result.Err.Error(), one.File+":"), "the failure does not say where it is: %v", result.Err)
				t.Logf("as it should: %v", result.Err)
			})
		}
	}
}
