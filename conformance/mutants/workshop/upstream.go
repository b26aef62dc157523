package workshop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Modules are those of upstream that get mutants.
var Modules = []string{"k8s.io/apiserver", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator", kubernetes}

// kubernetes is the module whose version is the release.
const kubernetes = "k8s.io/kubernetes"

// Two modules of this repository, and judge, the package that the program is built from, which
// links the server chain.
const (
	snowglobe = "snowglobe.test"
	module    = snowglobe + "/conformance/mutants"
	judge     = module + "/judge"
)

// listed is a package as "go list" describes it.
type listed struct {
	ImportPath string
	Dir        string
	Export     string
	Module     *struct{ Path, Version, Dir, GoVersion string }

	GoFiles, CgoFiles, EmbedFiles, SFiles, HFiles []string
}

// upstream is what the program is built from.
type upstream struct {
	packages []listed // of Modules
	exports  map[string]string
	modules  map[string]string // module path -> folder
	version  map[string]string // module path -> Go version
	release  string            // of Kubernetes
}

// readUpstream asks the go command in the module's folder root. What the type checker
// needs is compiled if it is not in Go's build cache.
func readUpstream(ctx context.Context, root string) (*upstream, error) {
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-export",
		"-json=ImportPath,Dir,Export,Module,GoFiles,CgoFiles,EmbedFiles,SFiles,HFiles", judge)
	list.Dir = root
	var said bytes.Buffer
	list.Stderr = &said
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list upstream's packages: %w: %s", err, said.String())
	}
	u := &upstream{exports: map[string]string{}, modules: map[string]string{}, version: map[string]string{}}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return u, nil
		} else if err != nil {
			return nil, fmt.Errorf("list upstream's packages: %w", err)
		}
		u.exports[p.ImportPath] = p.Export
		if p.Module == nil || !slices.Contains(Modules, p.Module.Path) {
			continue
		}
		u.packages = append(u.packages, p)
		u.modules[p.Module.Path] = p.Module.Dir
		u.version[p.Module.Path] = p.Module.GoVersion
		if p.Module.Path == kubernetes {
			u.release = p.Module.Version
		}
	}
}

// Root returns the folder of the module conformance/mutants, which the working directory must be in.
func Root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	file := strings.TrimSpace(string(out))
	text, err := os.ReadFile(file)
	if err != nil || modfile.ModulePath(text) != module {
		return "", errors.New("find the module: run this in conformance/mutants of a checkout of Snowglobe, since " +
			"it builds Snowglobe with mutants")
	}
	return filepath.Dir(file), nil
}

// Repository is the folder of the repository that the module at root is in.
func Repository(root string) string { return filepath.Dir(filepath.Dir(root)) }
