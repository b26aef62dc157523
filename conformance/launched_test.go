package conformance_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/target"
)

// TestLaunchedIsCleanedUp registers clean-ups with control planes of a case's own: they run
// while those are there, the last first.
func TestLaunchedIsCleanedUp(t *testing.T) {
	var ran []string
	var folder string
	tested := suite.Case{ID: "S1/launched", Test: func(ctx context.Context, t *suite.T) {
		_, other := t.Launch(ctx)
		folder = other.Folder()
		other.Namespace(ctx)
		did := func(what string) func(context.Context) error {
			return func(context.Context) error {
				_, err := other.Kube.Discovery().ServerVersion()
				ran = append(ran, fmt.Sprint(what, ": ", err))
				return nil
			}
		}
		t.Cleanup(did("before it is stopped"))
		other.Cleanup(did("its own"))
		jane := other.As("jane")
		jane.Cleanup(did("a user's"))
	}}
	report, err := engine.Simulate(t.Context(), target.Memory(), []suite.Case{tested}, nil)
	require.NoError(t, err)
	assert.Equal(t, engine.Passed, report.Results[0].State, report.Results[0].Message)
	assert.Equal(t, []string{"before it is stopped: <nil>", "a user's: <nil>", "its own: <nil>"}, ran)
	assert.NoDirExists(t, folder)
}
