package conformance_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/ledger"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/target"
)

const makesFile = "target/makes.json"

// refused are the cases that ask for a change of what is not theirs, because a server must refuse it.
var refused = []string{
	"S8/denied-by-default", "S9/system-namespaces-stay", "S12/method-is-not-allowed",
	"S13/system-namespaces-are-immortal", "S18/verbs-are-what-is-served",
}

// checkMakes compares what cases have made with what target.Makes says, or has it say so.
func checkMakes(t *testing.T, pages []*ledger.Page) {
	t.Helper()
	seen := map[string][]string{}
	for _, page := range pages {
		seen[page.Name] = makes(t, page)
		for _, object := range page.Asked() {
			if slices.Contains(refused, page.Name) {
				continue
			}
			// The server makes some for what is on the page, and gives them its name.
			assert.Contains(t, object.String(), suite.NamePrefix, "%s asks for it to be changed", page.Name)
		}
	}
	if *update {
		updateMakes(t, seen)
		return
	}
	for id, made := range seen {
		assert.Equal(t, target.Makes(id), made, "what %s makes; run: go test ./conformance -run TestConformanceOverTLS -all -update", id)
	}
}

// makes is what a page has, outside the namespaces that are on it.
func makes(t *testing.T, page *ledger.Page) (made []string) {
	t.Helper()
	for _, object := range page.Made() {
		if page.Has(object.Namespace) {
			continue
		}
		assert.Contains(t, object.String(), suite.NamePrefix, "%s makes it", page.Name)
		if strings.HasSuffix(object.Group, suite.GroupSuffix) {
			continue // of a definition that it makes
		}
		resource := object.GroupResource.String()
		if object.Namespace != "" {
			resource += " in " + object.Namespace
		}
		if !slices.Contains(made, resource) {
			made = append(made, resource)
		}
	}
	slices.Sort(made)
	return made
}

// updateMakes writes what was seen, and leaves the other cases there are as they are.
func updateMakes(t *testing.T, seen map[string][]string) {
	t.Helper()
	all := map[string][]string{}
	for _, c := range conformance.Cases() {
		made, ran := seen[c.ID]
		if !ran {
			made = target.Makes(c.ID)
		}
		if len(made) > 0 {
			all[c.ID] = made
		}
	}
	text, err := json.MarshalIndent(all, "", " ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(makesFile, append(text, '\n'), 0o644))
}
