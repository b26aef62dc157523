package stock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs are a kube-apiserver and an etcd in one folder.
type Programs struct {
	Folder    string // absolute
	APIServer string // what kube-apiserver --version prints
	Etcd      string // what etcd --version prints
}

const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
)

// packages are what the programs are built from.
var packages = map[string]string{
	apiServer: "k8s.io/kubernetes/cmd/kube-apiserver",
	etcd:      "go.etcd.io/etcd/server/v3",
}

// Find finds the programs in a folder. An error says how to build what is missing.
func Find(ctx context.Context, folder string) (p Programs, err error) {
	if p.Folder, err = filepath.Abs(folder); err != nil {
		return Programs{}, err
	}
	if p.APIServer, err = versionOf(ctx, p.path(apiServer)); err == nil {
		p.Etcd, err = versionOf(ctx, p.path(etcd))
	}
	return p, err
}

func (p Programs) path(name string) string { return filepath.Join(p.Folder, name) }

// versionOf returns the first line that a program prints for --version.
func versionOf(ctx context.Context, path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%s is missing; build it in the folder of this module: go build -o %s %s (docs/HACKING.md has the whole recipe)",
			path, path, packages[filepath.Base(path)])
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
