package stock

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFind finds both programs, and says which of them is missing.
func TestFind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("scripts are no programs there")
	}
	folder := t.TempDir()
	for name, version := range map[string]string{apiServer: "Kubernetes v1.37.1", etcd: "etcd Version: 3.7.3"} {
		_, err := Find(t.Context(), folder)
		require.ErrorContains(t, err, "is missing; build it in the folder of this module: go build -o ")
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\necho "+version+"\necho more\n"), 0o700))
	}
	found, err := Find(t.Context(), folder)
	require.NoError(t, err)
	assert.Equal(t, Programs{Folder: folder, APIServer: "Kubernetes v1.37.1", Etcd: "etcd Version: 3.7.3"}, found)
}

// TestBuildElsewhere is in no module.
func TestBuildElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOFLAGS", "")
	_, err := Build(t.Context(), t.TempDir(), io.Discard)
	require.ErrorContains(t, err, "this is to be in the folder of a module that requires k8s.io/kubernetes")
}
