package controllerruntime_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var suites = flag.Bool("suites", false, "run suites of controller-runtime and of a kubebuilder project, beside an etcd and a kube-apiserver, which are built")

// TestSuites runs controller-runtime's suites of its client and its cache, and that of the
// webhooks of a kubebuilder project, three times: on a kube-apiserver and an etcd, as they
// are on what "snowglobe assets" makes, and with the path of one import changed. It prints
// how long each took.
func TestSuites(t *testing.T) {
	if !*suites {
		t.Skip("takes minutes; run it with -suites")
	}
	root := filepath.Dir(output(t, ".", "go", "env", "GOMOD"))
	work := t.TempDir()
	real, assets := filepath.Join(work, "real"), filepath.Join(work, "assets")
	for name, pkg := range map[string]string{
		"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver", "etcd": "go.etcd.io/etcd/server/v3", "kubectl": "k8s.io/kubernetes/cmd/kubectl",
	} {
		output(t, root, "go", "build", "-o", filepath.Join(real, name), pkg)
	}
	output(t, root, "go", "run", "./cmd/snowglobe", "assets", assets)

	const theirs, ours = "sigs.k8s.io/controller-runtime/pkg/envtest", "snowglobe.test/envtest/controllerruntime/envtest"
	module, operator := filepath.Join(work, "controller-runtime"), filepath.Join(t.TempDir(), "operator") // not in the workspace
	copyModule(t, output(t, root, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime"), module)
	copyModule(t, filepath.Join(root, "examples", "operator"), operator)
	output(t, operator, "go", "mod", "edit", "-replace=snowglobe.test="+root)
	require.NoError(t, os.WriteFile(filepath.Join(work, "go.work"), fmt.Appendf(nil, "go 1.26.0\nuse (\n\t%s\n\t%s\n)\n", module, root), 0o600))
	for _, s := range []suite{
		{filepath.Join(module, "pkg", "client"), "client_suite_test.go"},
		{filepath.Join(module, "pkg", "cache"), "cache_suite_test.go"},
		{filepath.Join(operator, "internal", "webhook", "v1"), "webhook_suite_test.go"},
	} {
		s.replace(t, ours, theirs)
		s.run(t, "kube-apiserver and etcd", real)
		s.run(t, "snowglobe assets", assets)
		s.replace(t, theirs, ours)
		s.run(t, "one import changed", filepath.Join(work, "nothing"))
	}
}

// suite is a package of specs, and its file that imports envtest.
type suite struct{ folder, main string }

func (s suite) replace(t *testing.T, before, after string) {
	t.Helper()
	file := filepath.Join(s.folder, s.main)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(content), before, after, 1)), 0o600))
}

// run builds and runs a suite, and logs what it says and how long it ran.
func (s suite) run(t *testing.T, on, assets string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "suite.test")
	output(t, s.folder, "go", "test", "-c", "-o", program, ".")
	run := exec.CommandContext(t.Context(), program)
	run.Dir, run.Env = s.folder, append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	begun := time.Now()
	out, err := run.CombinedOutput()
	took := time.Since(begun)
	if err != nil {
		t.Errorf("%s on %s: %v\n%s", s.main, on, err, out)
		return
	}
	_, ran, _ := strings.Cut(string(out), "Ran ")
	ran, _, _ = strings.Cut(ran, " Specs")
	t.Logf("%s on %s: %s specs in %s", s.main, on, ran, took.Round(100*time.Millisecond))
}

// output runs a command and returns what it prints.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Stderr = dir, os.Stderr
	out, err := command.Output()
	require.NoError(t, err, "%s", command)
	return strings.TrimSpace(string(out))
}

// copyModule copies a module that is read-only.
func copyModule(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	require.NoError(t, filepath.WalkDir(to, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o700)
	}))
}
