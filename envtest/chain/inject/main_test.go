package inject

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// injectorFor returns an Injector whose rules are these.
func injectorFor(t testing.TB, rules ...string) *edge.Injector {
	t.Helper()
	set := fault.New(fault.Config{})
	t.Cleanup(set.Close)
	for _, text := range rules {
		rule, err := fault.Parse(text, fault.Names{})
		require.NoError(t, err)
		_, err = set.Add(rule)
		require.NoError(t, err)
	}
	crash := func(error) {}
	i := edge.NewInjector(set, "apiserver-0", edge.Effects{Crash: crash})
	t.Cleanup(i.End)
	return i
}
