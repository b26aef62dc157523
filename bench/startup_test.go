package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestStartupMeasuresEveryBoot(t *testing.T) {
	profiles := t.TempDir()
	var said bytes.Buffer
	report, err := Startup(t.Context(), StartupOptions{Runs: 1, Following: 1, Profile: profiles, Progress: &said})
	if err != nil {
		t.Fatal(err)
	}
	for name, timing := range map[string]Timing{"first": report.FirstBoot, "following": report.FollowingBoot, "load": report.Load} {
		if len(timing.Samples) != 1 || timing.Min <= 0 {
			t.Errorf("%s: want one positive sample, got %v", name, timing)
		}
	}
	if len(report.Stop.Samples) != 2 {
		t.Errorf("want a stop for each boot, got %v", report.Stop)
	}
	if !strings.Contains(said.String(), "run 1 of 1: first boot ") {
		t.Errorf("progress: %q", said.String())
	}
	for _, name := range []string{"boot-1.pprof", "boot-2.pprof"} {
		if info, err := os.Stat(filepath.Join(profiles, name)); err != nil || info.Size() == 0 {
			t.Errorf("profile %s: %v, %v", name, info, err)
		}
	}
	decodes(t, report)
}

// decodes checks that a report's JSON loses nothing.
func decodes[R Report](t *testing.T, report R) {
	t.Helper()
	var text bytes.Buffer
	if err := Write(&text, FormatJSON, report); err != nil {
		t.Fatal(err)
	}
	var decoded R
	decoder := json.NewDecoder(&text)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&decoded); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(decoded, report) {
		t.Errorf("JSON lost something:\n got %+v\nwant %+v", decoded, report)
	}
}

func TestStartupRefuses(t *testing.T) {
	empty, half := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho Kubernetes v1.2.3\n"
	if err := os.WriteFile(filepath.Join(half, "kube-apiserver"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "kube-apiserver"), []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(empty, "nowhere")
	for name, test := range map[string]struct {
		opts StartupOptions
		want []string
	}{
		"missing folder": {StartupOptions{Against: missing},
			[]string{filepath.Join(missing, "kube-apiserver") + " is missing", "go build -o " + missing, "docs/HACKING.md"}},
		"empty folder":    {StartupOptions{Against: empty}, []string{"kube-apiserver is missing", "k8s.io/kubernetes/cmd/kube-apiserver"}},
		"no etcd":         {StartupOptions{Against: half}, []string{"etcd is missing", "go.etcd.io/etcd/server/v3"}},
		"no program":      {StartupOptions{Against: broken}, []string{"kube-apiserver does not run"}},
		"store":           {StartupOptions{Store: "disk"}, []string{`store "disk" is unknown; use memory or embedded`}},
		"runs":            {StartupOptions{Runs: -1}, []string{"-1 runs"}},
		"following boots": {StartupOptions{Following: maxBoots + 1}, []string{"1001 following boots"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Startup(t.Context(), test.opts)
			if err == nil {
				t.Fatal("not refused")
			}
			for _, want := range append(test.want, "bench startup: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in: %v", want, err)
				}
			}
		})
	}
}

// A program that forgets to call StartupChild would execute itself for ever.
func TestStartupRefusesToNest(t *testing.T) {
	t.Setenv(childVariable, "{}")
	if _, err := Startup(t.Context(), StartupOptions{}); err == nil || !strings.Contains(err.Error(), "StartupChild") {
		t.Errorf("a child must not start children: %v", err)
	}
}

func TestChildEnvironment(t *testing.T) {
	for _, name := range []string{"KUBEBUILDER_ASSETS", "TEST_ASSET_ETCD", "USE_EXISTING_CLUSTER", "KEPT"} {
		t.Setenv(name, "x")
	}
	got := strings.Join(childEnvironment(), "\n")
	for name, want := range map[string]bool{"KUBEBUILDER_ASSETS=": false, "TEST_ASSET_ETCD=": false, "USE_EXISTING_CLUSTER=": false, "KEPT=": true} {
		if strings.Contains(got, name) != want {
			t.Errorf("%s in the environment of a child: want %t", name, want)
		}
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
		if got.Median != test.median || got.Min != test.min || got.Max != test.max {
			t.Errorf("%v: got %+v", test.samples, got)
		}
	}
	if got := timing([]time.Duration{3}).ratio(timing([]time.Duration{6})); got != 0.5 {
		t.Errorf("3 is %g times 6", got)
	}
	if got := timing([]time.Duration{3}).ratio(Timing{}); got != 0 {
		t.Errorf("ratio to nothing: %g", got)
	}
}

func TestRound(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234567890: "1.235s", 35123456: "35.12ms", 1234: "1.234µs", 999: "999ns", 0: "0s", 12345678901: "12.35s",
	} {
		if got := round(d).String(); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}
