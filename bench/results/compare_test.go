package results

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made is a report of samples that differ by a few percent, and take so many times as long. One
// round of four is busy.
func made(seed uint64, rounds int, longer map[string]float64) AllReport {
	random := rand.New(rand.NewPCG(seed, seed))
	var report AllReport
	for range rounds {
		busy := 1.0 // all of the round takes longer
		if random.IntN(4) == 0 {
			busy += random.Float64()
		}
		found := map[string]float64{}
		for _, name := range Measures {
			found[name] = busy * (1 + 0.03*random.NormFloat64())
			if times := longer[name]; times > 0 {
				found[name] *= times
			}
		}
		report.Add(found)
	}
	return report
}

// TestLowOfResample compares the count of what is drawn with what is drawn.
func TestLowOfResample(t *testing.T) {
	for n := 1; n < 12; n++ {
		sorted := make([]float64, n)
		for i := range sorted {
			sorted[i] = float64(i * i)
		}
		for seed := range uint64(20) {
			random, drawn := rand.New(rand.NewPCG(seed, 0)), make([]float64, n)
			for i := range drawn {
				drawn[i] = sorted[random.IntN(n)]
			}
			assert.InDelta(t, low(drawn), lowOfResample(rand.New(rand.NewPCG(seed, 0)), sorted), 1e-9, "%d samples", n)
		}
	}
}

// TestCompare sees what takes a tenth longer, and nothing else, nine times of ten.
func TestCompare(t *testing.T) {
	const times = 10
	seen, imagined := 0, 0
	for seed := range uint64(times) {
		old := made(seed, 30, nil)
		changes, err := Compare(old, made(seed+100, 30, map[string]float64{MeasureList: 1.1}))
		require.NoError(t, err)
		if err := changes.Err(); err != nil && err.Error() == "slower: list" {
			assert.ErrorIs(t, err, ErrSlower)
			seen++
		}
		same, err := Compare(old, made(seed+200, 30, nil))
		require.NoError(t, err)
		if same.Err() != nil {
			imagined++
		}
	}
	assert.GreaterOrEqual(t, seen, times*9/10)
	assert.LessOrEqual(t, imagined, times/10)
}

// TestCompareTells has one report of what takes longer, shorter and as long.
func TestCompareTells(t *testing.T) {
	changes, err := Compare(made(1, 20, nil), made(2, 20, map[string]float64{MeasureList: 1.3, MeasureBoot: 0.7}))
	require.NoError(t, err)
	text := &bytes.Buffer{}
	changes.WriteText(text)
	assert.Regexp(t, `(?m)^list +1\.[23]\d+ +1\.\d+ to 1\.\d+ +slower +\d+$`, text.String())
	assert.Regexp(t, `(?m)^boot +0\.[67]\d+ +0\.\d+ to 0\.\d+ +faster +\d+$`, text.String())
	assert.Regexp(t, `(?m)^reset +[01]\.\d+ +[01]\.\d+ to 1\.\d+ +\d+$`, text.String())

	few, err := Compare(made(1, 4, nil), made(2, 4, nil))
	require.NoError(t, err)
	for i, change := range changes.Changes {
		assert.InDelta(t, 100, change.Rounds, 60, "3%% of noise: %s", change.Measure)
		assert.Less(t, change.High-change.Low, few.Changes[i].High-few.Changes[i].Low+0.1, "more rounds tell more: %s", change.Measure)
	}
}

// TestCompareMachines has all take longer on a machine that is another, and a list more than that.
func TestCompareMachines(t *testing.T) {
	longer := map[string]float64{}
	for _, name := range Measures {
		longer[name] = 1.3
	}
	old := made(1, 20, nil)
	same, err := Compare(old, made(2, 20, longer))
	require.NoError(t, err)
	require.NoError(t, same.Err())
	text := &bytes.Buffer{}
	same.WriteText(text)
	assert.Contains(t, text.String(), "the machine itself is slower, so that all else is divided by the calibration\n")
	assert.Regexp(t, `(?m)^calibration +1\.[23]\d+ `, text.String())
	assert.Regexp(t, `(?m)^boot +(0\.9|1\.0)\d+ `, text.String())

	old.Measures[0].Name = "yardstick" // as reports of 0.1.0 have it
	longer[MeasureList] = 1.5
	slower, err := Compare(old, made(3, 20, longer))
	require.NoError(t, err)
	assert.EqualError(t, slower.Err(), "slower: list")
}

// TestCompareRefuses compares what can't be compared.
func TestCompareRefuses(t *testing.T) {
	report, other := made(1, 2, nil), made(1, 2, nil)
	other.Machine.CPU = "another"
	_, err := Compare(report, other)
	require.ErrorContains(t, err, "measure both in the same way")
	_, err = Compare(report, made(1, 1, nil))
	require.ErrorContains(t, err, "no measure in common")
	var older AllReport
	require.NoError(t, json.Unmarshal([]byte(`{"measures": [{"name": "write", "samplesSeconds": [1, 1]}]}`), &older))
	_, err = Compare(older, report)
	require.ErrorContains(t, err, "no measure in common", "an older report, of medians")
}
