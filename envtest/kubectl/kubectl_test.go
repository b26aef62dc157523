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

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/kubectl"
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
	if err != nil || out != "ok" {
		t.Errorf("kubectl says %q, %v", out, err)
	}
	if len(asked) != 1 || asked[0] != "Bearer snow /readyz" {
		t.Errorf("the server was asked %q", asked)
	}
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
		"an editor":       {[]string{"-n", "default", "edit", "pod", "a"}, "kubectl edit starts an editor"},
		"a socket":        {[]string{"exec", "a", "--", "ls"}, "kubectl exec needs a network connection"},
		"no more a word":  {[]string{"get", "configmap", "can-i"}, "could not find the requested resource"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubectl.Run(t.Context(), &rest.Config{Host: server.URL}, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}

// TestNoConfig is told what is missing.
func TestNoConfig(t *testing.T) {
	if err := (&kubectl.Cmd{Args: []string{"get", "pods"}}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Config") {
		t.Error(err)
	}
}

// TestContext has a server that does not answer before the caller loses patience.
func TestContext(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := kubectl.Run(ctx, &rest.Config{Host: server.URL}, "get", "--raw", "/readyz")
	if err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("the error is %v", err)
	}
}

// TestFiles looks for files in the folder of the command, however a flag names them.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "snow.txt"), []byte("falls"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flag := range [][]string{{"--from-file", "snow.txt"}, {"--from-file=snow.txt"}, {"--from-file=flake=snow.txt"}} {
		var out strings.Builder
		args := append([]string{"create", "configmap", "snow", "--dry-run=client", "-o", "jsonpath={.data}"}, flag...)
		err := (&kubectl.Cmd{Config: &rest.Config{}, Args: args, Dir: dir, Stdout: &out}).Run(t.Context())
		if err != nil || !strings.Contains(out.String(), `:"falls"}`) {
			t.Errorf("%q: %q, %v", flag, out.String(), err)
		}
	}
	if _, err := kubectl.Run(t.Context(), &rest.Config{}, "create", "configmap", "snow", "--dry-run=client", "--from-file=snow.txt"); err == nil {
		t.Error("without a folder, kubectl finds a file that is not there")
	}
}
