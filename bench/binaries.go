package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binaries are what controller-runtime's envtest runs.
type Binaries struct {
	Folder    string `json:"folder"`    // absolute
	APIServer string `json:"apiserver"` // what kube-apiserver --version prints
	Etcd      string `json:"etcd"`      // what etcd --version prints
}

// programs are the binaries that envtest starts, and the packages to build them from.
var programs = []struct{ name, packagePath string }{
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"etcd", "go.etcd.io/etcd/server/v3"},
}

// findBinaries checks for all binaries in a folder before anything is measured.
func findBinaries(ctx context.Context, folder string) (Binaries, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return Binaries{}, err
	}
	var versions []string
	for _, program := range programs {
		version, err := versionOf(ctx, filepath.Join(folder, program.name))
		if err != nil {
			return Binaries{}, fmt.Errorf("%w; build it in the folder of this module: go build -o %s %s (docs/HACKING.md has the whole recipe)",
				err, filepath.Join(folder, program.name), program.packagePath)
		}
		versions = append(versions, version)
	}
	return Binaries{Folder: folder, APIServer: versions[0], Etcd: versions[1]}, nil
}

// versionOf returns the first line a binary prints for --version.
func versionOf(ctx context.Context, path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%s is missing", path)
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a file", path)
	}
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s does not run: %w", path, err)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, nil
}
