package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/results"
	"snowglobe.test/bench/startup"
	"snowglobe.test/internal/pages"
)

func TestStartupMeasuresEveryBoot(t *testing.T) {
	profiles := t.TempDir()
	var said bytes.Buffer
	report, err := startup.Measure(t.Context(), startup.Options{Runs: 1, Following: 1, Profile: profiles, Progress: &said})
	require.NoError(t, err)
	for name, timing := range map[string]measure.Timing{"first": report.FirstBoot, "following": report.FollowingBoot, "load": report.Load} {
		assert.Len(t, timing.Samples, 1, "%s: want one positive sample, got %v", name, timing)
		assert.Greater(t, timing.Min, time.Duration(0), "%s: want one positive sample, got %v", name, timing)
	}
	assert.Len(t, report.Stop.Samples, 2, "want a stop for each boot, got %v", report.Stop)
	assert.Contains(t, said.String(), "run 1 of 1: first boot ", "progress")
	for _, name := range []string{"boot-1.pprof", "boot-2.pprof"} {
		info, err := os.Stat(filepath.Join(profiles, name))
		assert.False(t, err != nil || info.Size() == 0, "profile %s: %v, %v", name, info, err)
	}
	decodes(t, report)
}

// decodes checks that a report's JSON loses nothing.
func decodes[R results.Report](t *testing.T, report R) {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, results.Write(&text, results.FormatJSON, report))
	var decoded R
	decoder := json.NewDecoder(&text)
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&decoded))
	assert.Equal(t, report, decoded, "JSON lost something")
}

func TestStartupRefuses(t *testing.T) {
	empty, half := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho Kubernetes v1.2.3\n"
	require.NoError(t, os.WriteFile(filepath.Join(half, "kube-apiserver"), []byte(script), 0o755))
	broken := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(broken, "kube-apiserver"), []byte("no program"), 0o644))
	missing := filepath.Join(empty, "nowhere")
	for name, test := range map[string]struct {
		opts startup.Options
		want []string
	}{
		"missing folder": {startup.Options{Against: missing},
			[]string{filepath.Join(missing, "kube-apiserver") + " is missing; build it in the folder of this module: go build -o " + missing, "docs/HACKING.md"}},
		"empty folder":    {startup.Options{Against: empty}, []string{"kube-apiserver is missing", "k8s.io/kubernetes/cmd/kube-apiserver"}},
		"no etcd":         {startup.Options{Against: half}, []string{"etcd is missing", "go.etcd.io/etcd/server/v3"}},
		"no program":      {startup.Options{Against: broken}, []string{"kube-apiserver does not run"}},
		"store":           {startup.Options{Store: "disk"}, []string{`store "disk" is unknown; use memory or embedded`}},
		"runs":            {startup.Options{Runs: -1}, []string{"-1 runs"}},
		"following boots": {startup.Options{Following: 1001}, []string{"1001 following boots"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := startup.Measure(t.Context(), test.opts)
			require.Error(t, err, "not refused")
			if strings.Contains(err.Error(), "is missing") {
				pages.Troubleshooting(t, "..", err.Error())
			}
			for _, want := range append(test.want, "bench startup: ") {
				assert.Contains(t, err.Error(), want)
			}
		})
	}
}

// A program that forgets to call Child would execute itself for ever.
func TestRefusesToNest(t *testing.T) {
	t.Setenv("SNOWGLOBE_BENCH", childStartup)
	_, err := startup.Measure(t.Context(), startup.Options{})
	assert.ErrorContains(t, err, "bench.Child", "a child must not start children")
	_, err = Watch(t.Context(), small())
	assert.ErrorContains(t, err, "bench.Child", "a child must not start children")
}
