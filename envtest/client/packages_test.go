package client

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

	"snowglobe.test/envtest/client/internal/program"
)

var packages = flag.Int("packages", 0, "build and run so many small test packages in three ways: with this package, with envtest, and with controller-runtime's envtest on an etcd and a kube-apiserver, which are built")

// The start of a control plane in each of the three ways.
var ways = []struct{ name, imports, start string }{
	{"envtest/client", `"snowglobe.test/envtest/client"`, `config := client.Start(t).Config()`},
	{"envtest", `"snowglobe.test/envtest"`, `config := envtest.Start(t).Config()`},
	{"controller-runtime's envtest", `"sigs.k8s.io/controller-runtime/pkg/envtest"`, `
	env := &envtest.Environment{}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer env.Stop()`},
}

const smallTest = `package small

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	%s
)

func Test(t *testing.T) {
	%s
	flake := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flake"}}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default").Create(t.Context(), flake, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
`

// TestPackages builds and runs small packages, and logs how long that takes: to build
// and link, and all of go test. What they import is built before.
func TestPackages(t *testing.T) {
	if *packages == 0 {
		t.Skip("takes minutes; run it with -packages 20")
	}
	root := filepath.Join(filepath.Dir(output(t, ".", "go", "env", "GOMOD")), "..", "..")
	work, assets := t.TempDir(), t.TempDir()
	for name, pkg := range map[string]string{"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver", "etcd": "go.etcd.io/etcd/server/v3"} {
		output(t, root, "go", "build", "-o", filepath.Join(assets, name), pkg)
	}
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	module := strings.Replace(read(t, filepath.Join(root, "go.mod")), "module snowglobe.test", "module small.test", 1)
	module += fmt.Sprintf("\nrequire snowglobe.test v0.0.0\nreplace snowglobe.test => %s\n", root)
	module += fmt.Sprintf("require %s v0.0.0\nreplace %[1]s => %[2]s\n", program.Module, filepath.Join(root, "envtest", "client"))
	write(t, filepath.Join(work, "go.mod"), module)
	write(t, filepath.Join(work, "go.sum"), read(t, filepath.Join(root, "go.sum")))
	for i, way := range ways {
		folder := fmt.Sprintf("way%d", i)
		write(t, filepath.Join(work, folder, "first", "a_test.go"), fmt.Sprintf(smallTest, way.imports, way.start))
		output(t, work, "go", "test", "./"+folder+"/first") // builds what is imported, and snowglobe
		for n := range *packages {
			write(t, filepath.Join(work, folder, fmt.Sprintf("small%d", n), "a_test.go"), fmt.Sprintf(smallTest, way.imports, way.start))
		}
		require.NoError(t, os.RemoveAll(filepath.Join(work, folder, "first")))
		begun := time.Now()
		output(t, work, "go", "test", "-run=^$", "./"+folder+"/...")
		built := time.Since(begun)
		begun = time.Now()
		output(t, work, "go", "test", "-count=1", "./"+folder+"/...")
		t.Logf("%d packages on %s: %s to build and link, %s for all of go test", *packages, way.name,
			built.Round(100*time.Millisecond), time.Since(begun).Round(100*time.Millisecond))
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

// output runs a command and returns what it prints.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Stderr = dir, os.Stderr
	out, err := command.Output()
	require.NoError(t, err, "%s\n%s", command, out)
	return strings.TrimSpace(string(out))
}
