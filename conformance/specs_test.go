package conformance_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
)

// TestSpecsAreSelected has ginkgo select among the specs of TestConformance, without running
// them, as this package selects among the cases.
func TestSpecsAreSelected(t *testing.T) {
	selection := engine.Selection{Labels: "(S6 || KEP-555) && core && !failure", Skip: "[Bb]ookmark"}
	want, err := engine.Select(conformance.Cases(), selection)
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), program, "-test.run=^TestConformance$", "-test.short", "-all", "-ginkgo.dry-run", "-ginkgo.no-color",
		"-ginkgo.randomize-all", "-ginkgo.v", "-ginkgo.label-filter="+selection.Labels, "-ginkgo.skip="+selection.Skip).CombinedOutput()
	require.NoError(t, err, "%s", out)
	named := map[string]bool{}
	for _, id := range regexp.MustCompile(`in virtual time, on memory (S\d+/[\w-]+): `).FindAllStringSubmatch(string(out), -1) {
		named[id[1]] = true
	}
	assert.NotEmpty(t, named)
	for _, c := range want {
		assert.True(t, named[c.ID], c.ID)
		delete(named, c.ID)
	}
	assert.Empty(t, named, "specs that are not selected as cases")
}
