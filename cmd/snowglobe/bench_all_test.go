package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/results"
	"snowglobe.test/internal/sample"
)

// TestSlower compares a run with one in which lists took a tenth of the time, and all else ten times
// as long.
func TestSlower(t *testing.T) {
	sample.Long(t)
	file := filepath.Join(t.TempDir(), "before.json")
	all := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = execute(t.Context(), append([]string{"bench", "all", "--only", "requests", "--rounds", "3", "--output", "json"}, args...), &out, &errs)
		return code, out.String(), errs.String()
	}
	code, text, stderr := all()
	require.Equal(t, exitOK, code, stderr)
	var report results.AllReport
	require.NoError(t, json.Unmarshal([]byte(text), &report))
	for _, m := range report.Measures {
		for i := range m.Samples {
			switch m.Name {
			case "calibration":
			case "list":
				m.Samples[i] /= 10
			default:
				m.Samples[i] *= 10
			}
		}
	}
	changed, err := json.Marshal(report)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, changed, 0o600))
	code, text, stderr = all("--compare", file)
	assert.Equal(t, exitBroken, code, stderr)
	assert.Contains(t, stderr, "snowglobe: slower: list\n")
	require.NoError(t, json.Unmarshal([]byte(text), &report))
	assert.NotNil(t, report.Changes)
}
