package releases

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
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"snowglobe.test/internal/gobuild"
)

const kubernetes = "k8s.io/kubernetes"

// resolve returns the newest version that is wanted, of those that the module proxy has.
func resolve(ctx context.Context, module, wanted string) (string, error) {
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte("module release\n"), 0o600); err != nil {
		return "", err
	}
	if strings.Count(wanted, ".") > 1 {
		return canonical(wanted), nil // a proxy may have it, and not list it
	}
	var listed struct{ Versions []string }
	if err := goJSON(ctx, module, &listed, "list", "-m", "-mod=mod", "-versions", "-json", kubernetes); err != nil {
		return "", fmt.Errorf("which releases there are: %w", err)
	}
	if version := newest(listed.Versions, wanted); version != "" {
		return version, nil
	}
	there := minors(listed.Versions)
	return "", fmt.Errorf("there are no modules of a release %s of %s; the newest of others: %s", wanted, kubernetes, strings.Join(there[:min(6, len(there))], ", "))
}

// build builds kube-apiserver in a module of its own, and returns its path there.
func build(ctx context.Context, module, version string, progress io.Writer) (string, error) {
	var downloaded struct{ GoMod, Error string }
	err := goJSON(ctx, module, &downloaded, "mod", "download", "-json", kubernetes+"@"+version)
	if downloaded.Error != "" {
		err = errors.New(downloaded.Error)
	}
	if err != nil {
		return "", err
	}
	theirs, err := os.ReadFile(downloaded.GoMod)
	if err != nil {
		return "", err
	}
	text, err := requiring(theirs, version)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), text, 0o600); err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-buildvcs=false", "-trimpath", "-ldflags", Stamp(version),
		"-o", filepath.Join(module, apiServer), kubernetes+"/cmd/"+apiServer)
	command.Dir, command.Env = module, environment()
	if err := gobuild.Build(command, apiServer+" "+version, progress); err != nil {
		return "", err
	}
	return filepath.Join(module, apiServer), nil
}

// environment is this process's without what is meant for the user's own module.
func environment() []string { return append(os.Environ(), "GOFLAGS=", "GOWORK=off") }

// requiring returns the go.mod of a module that requires a release of Kubernetes. In Kubernetes'
// own go.mod, modules from its repository are at v0.0.0 and replaced by folders of it; they are
// published as v0.x. Everything else is required as it is there.
func requiring(theirs []byte, version string) ([]byte, error) {
	parsed, err := modfile.Parse("go.mod of "+kubernetes, theirs, nil)
	if err != nil {
		return nil, err
	}
	published := "v0." + strings.TrimPrefix(version, semver.Major(version)+".")
	ours := &modfile.File{}
	for _, add := range []error{ours.AddModuleStmt("release"), ours.AddGoStmt(parsed.Go.Version), ours.AddRequire(kubernetes, version)} {
		err = errors.Join(err, add)
	}
	for _, g := range parsed.Godebug {
		err = errors.Join(err, ours.AddGodebug(g.Key, g.Value))
	}
	for _, r := range parsed.Require {
		required := r.Mod.Version
		if required == "v0.0.0" {
			required = published
		}
		ours.AddNewRequire(r.Mod.Path, required, r.Indirect)
	}
	if err != nil {
		return nil, err
	}
	ours.Cleanup()
	return ours.Format()
}

// Stamp are the flags of the linker by which a program knows its version.
func Stamp(version string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, x := range [][2]string{{"gitVersion", version}, {"gitMajor", major}, {"gitMinor", minor}} {
			flags = append(flags, fmt.Sprintf("-X %s.%s=%s", pkg, x[0], x[1]))
		}
	}
	return strings.Join(flags, " ")
}

// goJSON reads what a go command says of a module.
func goJSON(ctx context.Context, module string, into any, args ...string) error {
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Env, command.Stderr = module, environment(), &stderr
	out, err := command.Output()
	if len(out) > 0 {
		if unreadable := json.Unmarshal(out, into); unreadable != nil && err == nil {
			return unreadable
		}
	}
	if err != nil && len(out) == 0 {
		return fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}
