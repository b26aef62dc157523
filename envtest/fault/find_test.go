package fault

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFindPoints(t *testing.T) {
	for pattern, want := range map[string][]string{
		"store/put":                {"store/put"},
		"store/lease-*":            {"store/lease-grant"},
		"auth":                     {"auth/token", "auth/certificate"},
		"auth/*":                   {"auth/token", "auth/certificate"},
		"*/certificate":            {"stage/<stage>", "hook/<hook>", "signal/<signal>", "informer/<resource>", "cache/<resource>", "watch/<resource>", "webhook/<webhook>", "apiservice/<apiservice>", "auth/certificate"},
		"store/*":                  {"store/range", "store/list", "store/count", "store/put", "store/delete", "store/txn", "store/watch-create", "store/watch-event", "store/progress", "store/lease-grant", "store/compact"},
		"client":                   {"client"},
		"http/get":                 {"http/<verb>"},
		"hook/crd-informer-synced": {"hook/<hook>"},
		"hook/<hook>":              {"hook/<hook>"},
		"http/<verb>":              {"http/<verb>"},
	} {
		kinds, err := FindPoints(pattern)
		require.NoError(t, err)
		var names []string
		for _, k := range kinds {
			if !slices.Contains(names, k.Name) {
				names = append(names, k.Name)
			}
		}
		assert.ElementsMatch(t, want, names, pattern)
	}
	all, err := FindPoints("*")
	require.NoError(t, err)
	assert.Equal(t, Points(), all)
}

func TestFindPointsOfNone(t *testing.T) {
	for pattern, want := range map[string]string{
		"store/pat":     `no point is like "store/pat"; did you mean store/put?`,
		"sotre":         `no point is like "sotre"; did you mean store?`,
		"http/gte":      `no point is like "http/gte"; did you mean http/get or http/put?`,
		"hook/":         `no point is like "hook/"; did you mean hook, hook/<hook> or webhook/<webhook>?`,
		"nothing/alike": `no point is like "nothing/alike"`,
		"":              `no point is like ""`,
	} {
		_, err := FindPoints(pattern)
		assert.EqualError(t, err, want)
	}
}
