package envtest_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/virtualtime"
)

// TestAuthorizationConfig has a server read the file of --authorization-config, at the start
// and when it has changed, in virtual time.
func TestAuthorizationConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "authorization.json")
	write := func(authorizers string) {
		assert.NoError(t, os.WriteFile(file, []byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration","authorizers":[`+authorizers+`]}`), 0o600))
	}
	const node, rbac, all = `{"type":"Node","name":"node"}`, `{"type":"RBAC","name":"rbac"}`, `{"type":"AlwaysAllow","name":"alwaysallow"}`
	write(node + "," + rbac)
	require.NoError(t, virtualtime.Bubble(func() error {
		ctx := context.Background()
		cp, err := envtest.Launch(ctx, envtest.WithFlags("--authorization-config="+file))
		if err != nil {
			return err
		}
		lists := func() bool {
			client := kubernetes.NewForConfigOrDie(cp.NewClient().Config(envtest.User("jane")))
			_, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
			return err == nil
		}
		assert.False(t, lists(), "RBAC knows no jane")
		for _, step := range []struct {
			authorizers string
			allowed     bool
		}{
			{node + "," + rbac + "," + all, true},
			{"nonsense", true},
			{all, true},
			{rbac + "," + node, false},
		} {
			write(step.authorizers)
			time.Sleep(3 * time.Second)
			assert.Equal(t, step.allowed, lists(), "after %s", step.authorizers)
		}
		return cp.Stop(ctx)
	}))
}
