package envtest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/kubectl"
)

// kept is an object that does not go, and waited are more that nothing changes: no controller runs.
const (
	kept   = "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, finalizers: [example.com/keep]}}"
	waited = `
apiVersion: v1
kind: List
items:
- ` + kept + `
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: snow}
  spec:
    selector: {matchLabels: {app: snow}}
    template:
      metadata: {labels: {app: snow}}
      spec: {containers: [{name: snow, image: snow}]}
- apiVersion: v1
  kind: Node
  metadata: {name: hill}
- apiVersion: v1
  kind: Pod
  metadata: {name: flake, labels: {app: snow}}
  spec: {nodeName: hill, containers: [{name: snow, image: snow}]}
- apiVersion: policy/v1
  kind: PodDisruptionBudget
  metadata: {name: snow}
  spec: {minAvailable: 1, selector: {matchLabels: {app: snow}}}
`
)

// TestKubectlEnds has each command that waits end with its context, whatever it waits for.
func TestKubectlEnds(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		create := kubectl.Cmd{Config: cp.Config(), Args: []string{"create", "-f", "-"}, Stdin: strings.NewReader(waited), Stderr: t.Output()}
		require.NoError(t, create.Run(t.Context()))
		for _, command := range []string{
			"delete configmap kept",
			"delete configmap kept --timeout=10m",
			"drain hill --force --timeout=10m",
			"events --watch",
			"get configmaps --watch",
			"replace --force -f -",
			"rollout status deployment/snow",
			"rollout status deployment/snow --timeout=10m",
			"scale deployment snow --replicas=3 --timeout=10m",
			"wait configmap/kept --for=delete --timeout=10m",
			"wait deployment/snow --for=condition=Available --timeout=10m",
			"wait deployment/snow --for=jsonpath={.status.replicas}=3 --timeout=10m",
			"wait configmap/none --for=create --timeout=10m",
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			began := time.Now()
			c := kubectl.Cmd{Config: cp.Config(), Args: strings.Fields(command), Stdin: strings.NewReader(kept)}
			err := c.Run(ctx)
			cancel()
			assert.ErrorIs(t, err, context.DeadlineExceeded, command)
			assert.WithinDuration(t, began.Add(10*time.Second), time.Now(), 3*time.Second, "%s ends late", command)
		}
	})
}

// TestKubectlDir has kubectl read and write in the folder of a command, where a test is not.
func TestKubectlDir(t *testing.T) {
	cp := envtest.Start(t)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"columns.txt": "SNOW\nmetadata.name\n", "go.tpl": "{{range .items}}{{.metadata.name}} {{end}}", "path.txt": "{.items[*].metadata.name}",
		"hill/kustomization.yaml": "resources: [snow.yaml]\n", "hill/snow.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: default}}",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	run := func(dir string, args ...string) (string, error) {
		var out strings.Builder
		c := kubectl.Cmd{Config: cp.Config(), Dir: dir, Args: args, Stdout: &out, Stderr: t.Output()}
		err := c.Run(t.Context())
		return out.String(), err
	}
	for _, command := range []string{
		"get namespaces -o custom-columns-file=columns.txt",
		"get namespaces -o=go-template-file=go.tpl",
		"get namespaces -o go-template-file --template=go.tpl",
		"get namespaces -o templatefile --template go.tpl",
		"get namespaces -o jsonpath-file=path.txt",
		"get namespaces -o go-template={{range.items}}{{.metadata.name}}{{end}}",
		"kustomize ./hill",
		"kustomize hill/",
	} {
		out, err := run(dir, strings.Fields(command)...)
		assert.NoError(t, err, command)
		assert.Contains(t, out, "default", command)
	}
	out, err := run(filepath.Join(dir, "hill"), "kustomize")
	assert.NoError(t, err)
	assert.Contains(t, out, "default")
	for command, file := range map[string]string{
		"cluster-info dump --output-directory=out": "out/nodes.json",
		"kustomize hill -o built.yaml":             "built.yaml",
	} {
		_, err := run(dir, strings.Fields(command)...)
		assert.NoError(t, err, command)
		assert.FileExists(t, filepath.Join(dir, file), command)
	}
}
