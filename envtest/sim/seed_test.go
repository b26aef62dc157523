package sim_test

import (
	"strings"
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
	assert.Equal(t, "snowglobe test --seed 7 example.com/a", sim.Repeat(7, sim.Search{}, "", "example.com/a"))
	for name, pattern := range map[string]string{
		"TestA":              `'^TestA$'`,
		"TestA/it_(works)#1": `'^TestA$/^it_\(works\)#1$'`,
		"TestA/it's":         `'^TestA$/^it'\''s$'`,
	} {
		want := "snowglobe test --seed 7 -run " + pattern + " example.com/a"
		assert.Equal(t, want, sim.Repeat(7, sim.Search{}, sim.OnlyTest(name), "example.com/a"))
	}
	assert.Equal(t, "-count=1", sim.Quote("-count=1"))
	assert.Equal(t, "''", sim.Quote(""))
}

func TestRepeatSearch(t *testing.T) {
	for want, search := range map[string]sim.Search{
		"snowglobe test --seed 7 --strategy pos .":                    {Strategy: "pos"},
		"snowglobe test --seed 7 --strategy pct --depth 5 --bubble .": {Strategy: "pct", Depth: 5, Bubble: true},
		"snowglobe test --seed 7 --bubble .":                          {Bubble: true},
		"snowglobe test --seed 7 --bubble --allow-leaks .":            {Bubble: true, Leaks: true},
	} {
		t.Run(want, func(t *testing.T) {
			require.NoError(t, search.Check())
			assert.Equal(t, want, sim.Repeat(7, search, "", "."))
			for _, variable := range search.Environment() {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			if search.Bubble {
				assert.Equal(t, want, sim.Repeat(7, sim.GivenSearch(), "", "."), "as a program in sim mode has it")
			}
		})
	}
	for given, want := range map[sim.Search]string{
		{}: "", {Bubble: true}: "late", {Strategy: "pct"}: "pct", {Strategy: "random", Bubble: true}: "random",
	} {
		assert.Equal(t, want, given.WithDefault().Strategy)
	}
	for want, search := range map[string]sim.Search{
		`there is no strategy "luck"; there are random, surw, walk, pct, pos, late, swarm`: {Strategy: "luck"},
		"the depth is from 1 on":                               {Strategy: "pct", Depth: -1},
		"only the strategies pct and swarm have a depth":       {Strategy: "pos", Depth: 2},
		"--allow-leaks is for tests in a bubble: add --bubble": {Leaks: true},
	} {
		assert.EqualError(t, search.Check(), want)
	}
}
