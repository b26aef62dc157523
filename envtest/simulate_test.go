package envtest_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/internal/pages"
	"snowglobe.test/internal/pki"
)

// TestSimulateAudit drains an audit log in batches, which upstream does until
// wait.NeverStop: a channel that stops virtual time for whoever waits for it. The
// log goes to stdout, as what rotates files starts a goroutine that never ends.
func TestSimulateAudit(t *testing.T) {
	policy := writeFile(t, filepath.Join(t.TempDir(), "policy.yaml"), "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
	log, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer log.Close()
	stdout := os.Stdout
	os.Stdout = log
	defer func() { os.Stdout = stdout }()
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		assert.NoError(t, cp.Stop(t.Context()))
	}, envtest.WithFlags("--audit-policy-file="+policy, "--audit-log-path=-", "--audit-log-mode=batch", "--audit-log-batch-max-wait=1h"))
	content, err := os.ReadFile(log.Name())
	assert.True(t, err == nil && strings.Contains(string(content), `"stage":"ResponseComplete"`), "the audit log has %d bytes: %v", len(content), err)
}

// TestSimulateIdle lets ten minutes pass over a server that no client uses.
func TestSimulateIdle(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		time.Sleep(10 * time.Minute)
		ok, red := cp.Servers()[0].Ready(t.Context())
		assert.True(t, ok, "not ready after ten idle minutes: %v", red)
	})
}

// TestWithClock begins today, when a certificate of today is valid, which it is not in the year 2000.
func TestWithClock(t *testing.T) {
	authority, err := pki.NewAuthority("today")
	require.NoError(t, err)
	pair, err := authority.Client("jane")
	require.NoError(t, err)
	block, _ := pem.Decode(pair.Cert)
	jane, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authority.CertPEM()))
	verify := func() error {
		_, err := jane.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err
	}
	envtest.Simulate(t, func(t *testing.T, _ *envtest.ControlPlane) {
		err := verify()
		require.ErrorContains(t, err, "x509: certificate has expired or is not yet valid: current time 2000-01-01T")
		pages.Troubleshooting(t, "..", err.Error())
	})
	today := time.Now()
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		assert.NoError(t, verify())
		assert.WithinRange(t, time.Now(), today, today.Add(time.Minute))
		namespace, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		require.NoError(t, err)
		assert.WithinRange(t, namespace.CreationTimestamp.Time, today.Truncate(time.Second), today.Add(time.Minute))
	}, envtest.WithClock(today))
	_, err = envtest.Launch(t.Context(), envtest.WithClock(today.Add(time.Hour)))
	assert.EqualError(t, err, "start control plane: only the clock of virtual time can be set")
}

// TestSimulateContext enters virtual time as a program does.
func TestSimulateContext(t *testing.T) {
	wrong := errors.New("wrong")
	begin := time.Now()
	err := envtest.SimulateContext(func(_ context.Context, cp *envtest.ControlPlane) error {
		time.Sleep(time.Hour + time.Minute)
		if err := cp.Err(); err != nil {
			return err
		}
		return wrong
	})
	assert.ErrorIs(t, err, wrong)
	assert.LessOrEqual(t, time.Since(begin), time.Hour, "time passed outside too")
}

func newToken(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	hour := int64(time.Hour / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}
	response, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "robot", request, metav1.CreateOptions{})
	require.NoError(t, err)
	return response.Status.Token
}

func whoAmI(ctx context.Context, cp *envtest.ControlPlane, token string) error {
	config := cp.Config()
	config.BearerToken = token
	review := &authenticationv1.SelfSubjectReview{}
	_, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(ctx, review, metav1.CreateOptions{})
	return err
}
