package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/storage/disk/disktest"
	"snowglobe.test/internal/pages"
)

// TestUpDataInUse starts a second control plane on the data of the first.
func TestUpDataInUse(t *testing.T) {
	dir := t.TempDir()
	args := []string{"up", "--store", "embedded", "--data-dir", "data", "--kubeconfig"}
	first := run(t, dir, nil, append(args, "first")...)
	first.says("Ctrl-C stops")
	second := run(t, dir, nil, append(args, "second")...)
	message := oneLine(t, second.exits(exitUnjudged, endsWithin))
	assert.Contains(t, message, fmt.Sprintf(`data folder "data" is in use by process %d (snowglobe up)`, first.cmd.Process.Pid))
	pages.Troubleshooting(t, "../..", message)

	// The first did not notice.
	first.ready(filepath.Join(dir, "first"))
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	first.exits(exitOK, endsWithin)
}

// TestUpFullDisk starts on a disk that is too small.
func TestUpFullDisk(t *testing.T) {
	disktest.Small(t, 16<<20, func(dir string, _ func()) {
		c := run(t, dir, nil, "up", "--store", "embedded", "--data-dir", "data", "--kubeconfig", filepath.Join(t.TempDir(), "kube"))
		message := oneLine(t, c.exits(exitUnjudged, endsWithin))
		assert.Contains(t, message, `the disk of "data" has no room for an etcd, which needs 128 MB to start (16 MB are free)`)
		pages.Troubleshooting(t, "../..", message)
	})
}

// TestUpReadOnlyDisk starts on a disk that can't be written.
func TestUpReadOnlyDisk(t *testing.T) {
	disktest.Small(t, 1<<20, func(dir string, readOnly func()) {
		readOnly()
		c := run(t, dir, nil, "up", "--store", "embedded", "--data-dir", "data", "--kubeconfig", filepath.Join(t.TempDir(), "kube"))
		message := oneLine(t, c.exits(exitUnjudged, endsWithin))
		assert.Contains(t, message, `the disk of "data/pki" is read-only`)
		pages.Troubleshooting(t, "../..", message)
	})
}

// TestUpDiskFillsUp writes until the disk is full.
func TestUpDiskFillsUp(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 200<<20, func(dir string, _ func()) {
		kubeconfig := filepath.Join(t.TempDir(), "kube")
		c := run(t, dir, nil, "up", "--store", "embedded", "--data-dir", "data", "--kubeconfig", kubeconfig)
		c.says("Ctrl-C stops")
		disktest.Fill(t, dir, 1<<20)
		value := strings.Repeat("v", 500_000)
		for i := range 200 {
			body := fmt.Sprintf(`{"metadata":{"name":"snow-%d"},"data":{"falls":%q}}`, i, value)
			code, _, err := request(kubeconfig, http.MethodPost, "/api/v1/namespaces/default/configmaps", body)
			if err != nil || code != http.StatusCreated {
				break
			}
		}
		output := c.exits(exitBroken, 2*endsWithin)
		assert.NotContains(t, output, "goroutine ")
		assert.NotContains(t, output, `{"`)
		_, message, found := strings.Cut(output, "snowglobe: the API server crashed: ")
		require.True(t, found, output)
		assert.Contains(t, oneLine(t, message), `the store has failed: etcd can't write: the disk of "data" is full`)
		pages.Troubleshooting(t, "../..", message)
		assert.NoFileExists(t, kubeconfig)
	})
}

// TestFilesOnFullDisk writes what commands write where there is no room for it.
func TestFilesOnFullDisk(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 1<<20, func(dir string, _ func()) {
		script := filepath.Join(t.TempDir(), "script.txtar")
		require.NoError(t, os.WriteFile(script, []byte(filesOfStates["script.txtar"]), 0o600))
		disktest.Fill(t, dir, 0)
		for _, args := range [][]string{
			{"run", "--events", "events.jsonl", script},
			{"run", "--trace", "trace", script},
			{"run", "--report", "page.html", script},
			{"run", "--perfetto", "perfetto", script},
			{"scenario", "new", "new.txtar"},
			{"conformance", "--focus", "S20/version-is-well-formed", "--junit", "junit.xml"},
			{"conformance", "--focus", "S20/version-is-well-formed", "--html", "page.html"},
			{"bench", "all", "--rounds", "1", "--only", "requests", "--html", "page.html"},
			{"explore", "--sim=false", "--seeds", "1", "--corpus", "corpus", script},
			{"up"},
		} {
			output := run(t, dir, nil, args...).exits(exitUnjudged, endsWithin)
			assert.Contains(t, output, `the disk of "`, "%s", args)
			assert.Contains(t, output, ` is full (0 MB are free): free some space there, or use another folder`, "%s", args)
			assert.NotContains(t, output, "no space left on device", "%s", args)
			pages.Troubleshooting(t, "../..", output)
		}
	})
}

// TestNoTemporaryFolder has no place for the folders of scripts.
func TestNoTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	var stderr bytes.Buffer
	require.Equal(t, exitUnjudged, execute(t.Context(), []string{"run", "--mutations", "expiry"}, io.Discard, &stderr))
	message := oneLine(t, stderr.String())
	assert.Contains(t, message, "folder of the run: temporary folder: ")
	pages.Troubleshooting(t, "../..", message)
}

// oneLine is the only line of an output.
func oneLine(t *testing.T, output string) string {
	t.Helper()
	assert.Equal(t, 1, strings.Count(output, "\n"), output)
	return output
}
