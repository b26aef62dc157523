package bench

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/results"
)

// TestPublish measures the parts of a page that take the least, and leaves those that are there.
func TestPublish(t *testing.T) {
	var said bytes.Buffer
	opts := PublishOptions{
		Folder:   filepath.Join(t.TempDir(), "new"),
		Only:     []string{results.PartMemory, results.PartMost, results.PartShares},
		Watchers: []int{2}, Many: 2, Most: []int{3}, Duration: 50 * time.Millisecond, Progress: &said,
	}
	require.NoError(t, Publish(t.Context(), opts))
	var memory results.WatchReport
	var most results.SweepReport
	var shares results.SharesReport
	load := func() {
		folder := results.Folder(opts.Folder)
		require.NoError(t, errors.Join(folder.Load(results.PartMemory, &memory), folder.Load(results.PartMost, &most),
			folder.Load(results.PartShares, &shares)))
	}
	load()
	assert.Equal(t, 3, most.Points[0].Value)
	require.Len(t, shares.Loads, 2)
	for _, load := range shares.Loads {
		assert.NotEmpty(t, load.Stages, load.Transport)
	}
	assert.Contains(t, said.String(), "most: measured in ")
	require.Len(t, memory.Loads, 3)
	for i, load := range memory.Loads {
		assert.Equal(t, []string{TransportProcess, TransportTLS, TransportProcess}[i], load.Transport)
		assert.NotNil(t, load.Server)
	}

	opts.Only, opts.Most = []string{results.PartMost}, []int{4}
	require.NoError(t, Publish(t.Context(), opts))
	load()
	assert.Equal(t, []int{3, 4}, most.Values(), "a point that is not measured anew is kept")
}

func TestPublishRefuses(t *testing.T) {
	for want, opts := range map[string]PublishOptions{
		"bench publish: give a folder for the page": {},
		"0 watchers: give a number from 1 to":       {Folder: "none", Watchers: []int{1, 0}},
		"200000 watchers: give a number from 1 to":  {Folder: "none", Most: []int{200_000}},
		"a duration of -1ns":                        {Folder: "none", Duration: -1},
		"there is no raw data in none":              {Folder: "none", Keep: true},
	} {
		assert.ErrorContains(t, Publish(t.Context(), opts), want)
		assert.NoDirExists(t, "none")
	}
}
