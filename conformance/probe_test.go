package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/target"
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/external"
	"snowglobe.test/fakes/etcd"
	"snowglobe.test/internal/pages"
	"snowglobe.test/internal/pki"
)

// kubeconfig writes a kubeconfig and returns its path.
func kubeconfig(t *testing.T, cluster clientcmdapi.Cluster, user clientcmdapi.AuthInfo) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.AuthInfos["c"] = &cluster, &user
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// TestUnreachable tells in one line what is wrong with a target, and runs no case.
func TestUnreachable(t *testing.T) {
	cp := envtest.Start(t, envtest.WithListener("127.0.0.1:0"))
	admin, powerless := cp.Config(envtest.Remote()), cp.Config(envtest.User("powerless"), envtest.Remote())
	other, err := pki.NewAuthority("other")
	require.NoError(t, err)
	notKubernetes := httptest.NewServer(http.NotFoundHandler())
	defer notKubernetes.Close()
	ours := clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	for name, test := range map[string]struct {
		path string
		want string
	}{
		"no server there":   {kubeconfig(t, clientcmdapi.Cluster{Server: "http://" + freeAddress(t)}, clientcmdapi.AuthInfo{}), "connection refused; is an API server running there, and reachable from here?"},
		"wrong CA":          {kubeconfig(t, clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: other.CertPEM()}, clientcmdapi.AuthInfo{}), "is the certificate-authority in "},
		"wrong credentials": {kubeconfig(t, ours, clientcmdapi.AuthInfo{Token: "made-up"}), "Unauthorized; are the credentials in "},
		"no rights":         {kubeconfig(t, ours, clientcmdapi.AuthInfo{ClientCertificateData: powerless.CertData, ClientKeyData: powerless.KeyData}), "use a user with all permissions"},
		"another server":    {kubeconfig(t, clientcmdapi.Cluster{Server: notKubernetes.URL}, clientcmdapi.AuthInfo{}), "is a healthy API server there?"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			report, err := conformance.Execute(t.Context(), conformance.Options{Kubeconfig: test.path, Out: &out})
			require.ErrorContains(t, err, test.want)
			require.NotErrorIs(t, err, engine.ErrFailed, "a promise is said to be broken")
			require.NotContains(t, err.Error(), "\n", "the error is longer than a line")
			assert.True(t, strings.HasPrefix(err.Error(), "conformance: the cluster at ") && strings.Contains(err.Error(), " can't be tested: creating a namespace as a dry run, within 10s, failed: "), "error %v does not say what was tried", err)
			pages.Troubleshooting(t, "..", err.Error())
			assert.Empty(t, out.String(), "it also says something")
			assert.Equal(t, len(conformance.Cases()), report.Count(engine.NotRun), "cases that did not run")
		})
	}
}

// freeAddress is an address of loopback at which no server listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// mortal is a cluster that is gone when it is told to be.
type mortal struct {
	nowhere
	why *error
}

func (m mortal) Open(ctx context.Context) (engine.Target[*suite.T], error) {
	cluster, err := m.nowhere.Open(ctx)
	return hooked{cluster, func(context.Context) error { return *m.why }, cluster.Close}, err
}

// TestTargetDies ends the run where the target does, and keeps what was judged.
func TestTargetDies(t *testing.T) {
	var why error
	cases := []suite.Case{
		made("passes", suite.Needs{}, passes),
		made("fails", suite.Needs{}, fails),
		made("meets the end", suite.Needs{}, func(ctx context.Context, target *suite.T) {
			why = errors.New("no server answers; is it there?")
			fails(ctx, target)
		}),
		made("is left", suite.Needs{}, fails),
	}
	var text, document bytes.Buffer
	report, err := engine.Run(t.Context(), mortal{why: &why}, cases, reports.Text{Out: &text})
	assert.True(t, errors.Is(err, why) && !strings.Contains(err.Error(), "\n"), "error %v", err)
	got := plain(report)
	for i := range got {
		got[i] = lineNumber.ReplaceAllString(got[i], "_test.go:LINE")
	}
	const gone = " not run the target is gone: no server answers; is it there?"
	want := []string{"passes passed", "fails failed counting run_test.go:LINE", "meets the end" + gone, "is left" + gone}
	assert.Empty(t, cmp.Diff(want, got))
	assert.Contains(t, text.String(), "1 passed, 1 failed, 0 not applicable, 2 not run in ")

	reports.JSON{Out: &document}.End(report)
	var read engine.Report
	require.NoError(t, json.Unmarshal(document.Bytes(), &read))
	assert.True(t, read.Count(engine.NotRun) == 2 && read.Error == why.Error(), "JSON %s", &document)
	suites := readJUnit(t, report)
	assert.True(t, suites.Tests == 4 && suites.Failures == 1 && suites.Disabled == 2, "JUnit: %d tests, %d failures, %d disabled", suites.Tests, suites.Failures, suites.Disabled)
}

// TestClusterDies stops a cluster behind a kubeconfig, and the etcd of a store, while cases
// run on them.
func TestClusterDies(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) (source engine.Source[*suite.T], stop func()){
		"kubeconfig": func(t *testing.T) (engine.Source[*suite.T], func()) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			cp, err := envtest.Launch(t.Context(), envtest.WithKubeconfig(path))
			require.NoError(t, err)
			copied := path + ".copy" // Stop removes the other
			content, err := os.ReadFile(path)
			require.NoError(t, errors.Join(err, os.WriteFile(copied, content, 0o600)))
			return target.Kubeconfig{Path: copied}, func() {
				assert.NoError(t, cp.Stop(context.WithoutCancel(t.Context())))
			}
		},
		"external store": func(t *testing.T) (engine.Source[*suite.T], func()) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			endpoint := "http://" + listener.Addr().String()
			server, err := etcd.New(etcd.Config{Endpoint: endpoint})
			require.NoError(t, err)
			served := make(chan error, 1)
			go func() { served <- server.Serve(listener) }()
			source, err := target.External(external.Config{URLs: []string{endpoint}})
			require.NoError(t, err)
			return source, func() {
				assert.NoError(t, errors.Join(server.Close(), <-served))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for what does not answer
			source, stop := start(t)
			report, err := engine.Run(t.Context(), source, []suite.Case{
				made("before", suite.Needs{}, passes),
				made("meets the end", suite.Needs{}, func(ctx context.Context, target *suite.T) {
					stop()
					fails(ctx, target)
				}),
				made("is left", suite.Needs{}, fails),
			}, nil)
			if err == nil || errors.Is(err, engine.ErrFailed) || !strings.Contains(err.Error(), "running there") {
				t.Errorf("error %v", err)
			} else {
				pages.Troubleshooting(t, "..", err.Error())
			}
			assert.True(t, report.Count(engine.Passed) == 1 && report.Count(engine.NotRun) == 2, "results %q", plain(report))
		})
	}
}

// fatal is the body of a request that ends the process of the server that reads it.
type fatal struct{}

func (fatal) Read([]byte) (int, error) {
	klog.Fatal("the end")
	return 0, io.EOF
}

// TestCrashIsBroken takes a server that ends by itself for a broken promise, and says so once.
func TestCrashIsBroken(t *testing.T) {
	report, err := engine.Run(t.Context(), target.Memory(), []suite.Case{
		made("meets the end", suite.Needs{}, func(ctx context.Context, target *suite.T) {
			client, err := rest.HTTPClientFor(target.Config)
			target.Expect(err).NotTo(gomega.HaveOccurred())
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.Config.Host+"/api/v1/namespaces", fatal{})
			target.Expect(err).NotTo(gomega.HaveOccurred())
			_, err = client.Do(request)
			target.Expect(err).NotTo(gomega.HaveOccurred())
		}),
		made("is left", suite.Needs{}, fails),
	}, nil)
	assert.True(t, errors.Is(err, engine.ErrFailed) && strings.Count(err.Error(), "the API server crashed: ") == 1, "error %v", err)
	assert.Equal(t, 2, report.Count(engine.NotRun), "results %q", plain(report))
}
