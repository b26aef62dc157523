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

	"snowglobe.test/internal/pages"
)

func TestStartupMeasuresEveryBoot(t *testing.T) {
	profiles := t.TempDir()
	var said bytes.Buffer
	report, err := Startup(t.Context(), StartupOptions{Runs: 1, Following: 1, Profile: profiles, Progress: &said})
	require.NoError(t, err)
	for name, timing := range map[string]Timing{"first": report.FirstBoot, "following": report.FollowingBoot, "load": report.Load} {
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
func decodes[R Report](t *testing.T, report R) {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, Write(&text, FormatJSON, report))
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
		opts StartupOptions
		want []string
	}{
		"missing folder": {StartupOptions{Against: missing},
			[]string{filepath.Join(missing, "kube-apiserver") + " is missing; build it in the folder of this module: go build -o " + missing, "docs/HACKING.md"}},
		"empty folder":    {StartupOptions{Against: empty}, []string{"kube-apiserver is missing", "k8s.io/kubernetes/cmd/kube-apiserver"}},
		"no etcd":         {StartupOptions{Against: half}, []string{"etcd is missing", "go.etcd.io/etcd/server/v3"}},
		"no program":      {StartupOptions{Against: broken}, []string{"kube-apiserver does not run"}},
		"store":           {StartupOptions{Store: "disk"}, []string{`store "disk" is unknown; use memory or embedded`}},
		"runs":            {StartupOptions{Runs: -1}, []string{"-1 runs"}},
		"following boots": {StartupOptions{Following: maxBoots + 1}, []string{"1001 following boots"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Startup(t.Context(), test.opts)
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
	t.Setenv(childVariable, childStartup)
	_, err := Startup(t.Context(), StartupOptions{})
	assert.ErrorContains(t, err, "bench.Child", "a child must not start children")
	_, err = Watch(t.Context(), small())
	assert.ErrorContains(t, err, "bench.Child", "a child must not start children")
}

func TestChildEnvironment(t *testing.T) {
	for _, name := range []string{"KUBEBUILDER_ASSETS", "TEST_ASSET_ETCD", "USE_EXISTING_CLUSTER", "KEPT"} {
		t.Setenv(name, "x")
	}
	got := strings.Join(childEnvironment(), "\n")
	for name, want := range map[string]bool{"KUBEBUILDER_ASSETS=": false, "TEST_ASSET_ETCD=": false, "USE_EXISTING_CLUSTER=": false, "KEPT=": true} {
		assert.Equal(t, want, strings.Contains(got, name), "%s in the environment of a child", name)
	}
}

func TestTiming(t *testing.T) {
	for _, test := range []struct {
		samples          []time.Duration
		median, min, max time.Duration
	}{
		{nil, 0, 0, 0},
		{[]time.Duration{7}, 7, 7, 7},
		{[]time.Duration{9, 1, 5}, 5, 1, 9},
		{[]time.Duration{8, 2, 4, 100}, 6, 2, 100},
	} {
		got := timing(test.samples)
		assert.Equal(t, test.median, got.Median, "%v: got %+v", test.samples, got)
		assert.Equal(t, test.min, got.Min, "%v: got %+v", test.samples, got)
		assert.Equal(t, test.max, got.Max, "%v: got %+v", test.samples, got)
	}
	assert.Equal(t, 0.5, timing([]time.Duration{3}).ratio(timing([]time.Duration{6})))
	assert.Equal(t, float64(0), timing([]time.Duration{3}).ratio(Timing{}), "ratio to nothing")
}

func TestRound(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234567890: "1.235s", 35123456: "35.12ms", 1234: "1.234µs", 999: "999ns", 0: "0s", 12345678901: "12.35s",
	} {
		assert.Equal(t, want, round(d).String(), "%d", d)
	}
}
