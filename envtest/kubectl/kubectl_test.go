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
