package kubectl_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/kubectl"
	"snowglobe.test/internal/hostile"
)

// TestConfig shows that only the given configuration is read: neither a kubeconfig of
// whoever runs the test, nor its kuberc, nor its folder.
func TestConfig(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked = append(asked, req.Header.Get("Authorization")+" "+req.URL.Path)
		_, _ = w.Write([]byte("ok"))
	}))
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "no-such-file"))
	t.Setenv("HOME", "/nonexistent")
	out, err := kubectl.Run(t.Context(), &rest.Config{Host: server.URL, BearerToken: "snow"}, "get", "--raw", "/readyz")
	assert.NoError(t, err)
	assert.Equal(t, "ok", out)
	assert.Equal(t, []string{"Bearer snow /readyz"}, asked, "what the server was asked")
}

// TestErrors has kubectl fail in each of its ways; none ends the process.
func TestErrors(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no such command": {[]string{"gett"}, `unknown command "gett"`},
		"no such flag":    {[]string{"get", "--snow"}, "unknown flag: --snow"},
		"no such file":    {[]string{"apply", "-f", "no-such-file.yaml"}, "no-such-file.yaml"},
		"no answer":       {[]string{"get", "--raw", "/readyz"}, "could not find the requested resource"},
		"exits":           {[]string{"auth", "can-i", "get", "pods"}, "SelfSubjectAccessReview"},
		"no version":      {[]string{"version"}, "get --raw /version"},
		"an editor":       {[]string{"-n", "default", "edit", "pod", "a"}, "kubectl edit starts an editor"},
		"another editor":  {[]string{"apply", "edit-last-applied", "pod", "a"}, "kubectl apply edit-last-applied starts an editor"},
		"edits first":     {[]string{"create", "-f", "no-such-file.yaml", "--edit"}, "kubectl create --edit starts an editor"},
		"edits not":       {[]string{"create", "-f", "no-such-file.yaml", "--edit=false"}, "no-such-file.yaml"},
		"attaches":        {[]string{"run", "a", "--image=a", "-i"}, "kubectl run --attach needs a network connection"},
		"attaches not":    {[]string{"run", "a", "--image=a", "-i", "--attach=false"}, "could not find the requested resource"},
		"removes":         {[]string{"run", "a", "--image=a", "--attach", "--rm"}, "kubectl run --attach needs a network connection"},
		"may list":        {[]string{"auth", "can-i", "--list"}, "could not find the requested resource"},
		"another program": {[]string{"kustomize", "--enable-helm", "."}, "kubectl kustomize --enable-helm runs another program"},
		"a profile":       {[]string{"get", "pods", "--profile=heap"}, "kubectl get with --profile measures all of this process"},
		"completion":      {[]string{"__complete", "get", ""}, "kubectl __complete runs another program"},
		"a socket":        {[]string{"exec", "a", "--", "ls"}, "kubectl exec needs a network connection"},
		"no more a word":  {[]string{"get", "configmap", "can-i"}, "could not find the requested resource"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubectl.Run(t.Context(), &rest.Config{Host: server.URL}, test.args...)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

// TestNoConfig is told what is missing.
func TestNoConfig(t *testing.T) {
	assert.ErrorContains(t, (&kubectl.Cmd{Args: []string{"get", "pods"}}).Run(t.Context()), "Config")
}

// TestContext has a server that does not answer before the caller loses patience.
func TestContext(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := kubectl.Run(ctx, &rest.Config{Host: server.URL}, "get", "--raw", "/readyz")
	assert.ErrorContains(t, err, context.DeadlineExceeded.Error())
}

// TestFiles looks for files in the folder of the command, however a flag names them.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"snow", "ice"} {
		manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(manifest), 0o600))
	}
	for _, test := range [][]string{
		{"snow", "create", "configmap", "new", "--from-file", "snow.yaml"},
		{"snow", "create", "configmap", "new", "--from-file=snow.yaml"},
		{"flake", "create", "configmap", "new", "--from-file=flake=snow.yaml"},
		{"snow", "label", "--local", "a=b", "-f", "snow.yaml"},
		{"snow", "label", "--local", "a=b", "-fsnow.yaml"},
		{"ice", "label", "--local", "a=b", "--filename=snow.yaml,ice.yaml"},
		{"stdin", "label", "--local", "a=b", "-f-"},
	} {
		var out strings.Builder
		c := kubectl.Cmd{
			Config: &rest.Config{}, Args: append(test[1:], "--dry-run=client", "-o", "json"), Dir: dir,
			Stdin: strings.NewReader("{apiVersion: v1, kind: ConfigMap, metadata: {name: stdin}}"), Stdout: &out,
		}
		assert.NoError(t, c.Run(t.Context()), "%q", test[1:])
		assert.Contains(t, out.String(), test[0], "%q", test[1:])
	}
	_, err := kubectl.Run(t.Context(), &rest.Config{}, "create", "configmap", "snow", "--dry-run=client", "--from-file=snow.yaml")
	assert.Error(t, err, "without a folder, kubectl finds a file that is not there")
}

// TestNoInput reads nothing for "-", though the process has an input.
func TestNoInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "input")
	require.NoError(t, os.WriteFile(file, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: snow}}"), 0o600))
	input, err := os.Open(file)
	require.NoError(t, err)
	defer func(stdin *os.File) { os.Stdin = stdin; _ = input.Close() }(os.Stdin)
	os.Stdin = input
	out, err := kubectl.Run(t.Context(), &rest.Config{}, "label", "--local", "a=b", "-f", "-", "-o", "json")
	assert.NoError(t, err)
	assert.Empty(t, out)
}

// warnings keeps what a server warns of.
type warnings []string

func (w *warnings) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

// TestWarnings gives those of each kubectl to that one, and those of others to their handler again.
func TestWarnings(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Warning", `299 - "snow is deprecated"`)
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	var others warnings
	defer rest.SetDefaultWarningHandler(rest.WarningLogger{})
	rest.SetDefaultWarningHandler(&others)
	var said strings.Builder
	require.NoError(t, (&kubectl.Cmd{Config: &rest.Config{Host: server.URL}, Args: []string{"get", "--raw", "/readyz"}, Stderr: &said}).Run(t.Context()))
	assert.Contains(t, said.String(), "snow is deprecated")
	assert.Empty(t, others)
	client, err := rest.UnversionedRESTClientFor(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs}})
	require.NoError(t, err)
	require.NoError(t, client.Get().AbsPath("/readyz").Do(t.Context()).Error())
	assert.Equal(t, warnings{"snow is deprecated"}, others)
}

// TestHostile has all of that again where the environment names other servers, settings and
// a language of its own.
func TestHostile(t *testing.T) {
	hostile.Again(t, "TestConfig", "TestErrors", "TestContext", "TestFiles", "TestEnglish")
}

// TestEnglish reads what kubectl translates.
func TestEnglish(t *testing.T) {
	out, err := kubectl.Run(t.Context(), &rest.Config{}, "help")
	assert.True(t, err == nil && strings.Contains(out, "Display one or many resources"), "kubectl says %q, %v", out, err)
}
