package sim_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/sim"
)

func TestGivenSeed(t *testing.T) {
	_, given, err := sim.GivenSeed()
	require.NoError(t, err)
	assert.False(t, given)
	t.Setenv(sim.SeedVariable, "18446744073709551615")
	seed, given, err := sim.GivenSeed()
	require.NoError(t, err)
	assert.True(t, given)
	assert.Equal(t, ^uint64(0), seed)
	for _, wrong := range []string{"", "-1", "x", "18446744073709551616"} {
		t.Setenv(sim.SeedVariable, wrong)
		_, _, err = sim.GivenSeed()
		assert.ErrorContains(t, err, "must be a seed: a whole number from 0 on", wrong)
	}
}

func TestRepeat(t *testing.T) {
	assert.Equal(t, "snowglobe test --seed 7 example.com/a", sim.Repeat(7, "", "example.com/a"))
	for name, pattern := range map[string]string{
		"TestA":              `'^TestA$'`,
		"TestA/it_(works)#1": `'^TestA$/^it_\(works\)#1$'`,
		"TestA/it's":         `'^TestA$/^it'\''s$'`,
	} {
		assert.Equal(t, "snowglobe test --seed 7 -run "+pattern+" example.com/a", sim.Repeat(7, sim.OnlyTest(name), "example.com/a"))
	}
	assert.Equal(t, "-count=1", sim.Quote("-count=1"))
	assert.Equal(t, "''", sim.Quote(""))
}
