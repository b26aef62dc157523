package stock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/fakes/aggregated"
	"snowglobe.test/fakes/etcd"
	"snowglobe.test/fakes/kms"
	"snowglobe.test/fakes/konnectivity"
	"snowglobe.test/fakes/kubelet"
	"snowglobe.test/fakes/oidc"
	"snowglobe.test/fakes/webhook"
	"snowglobe.test/internal/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// binaryVariable names the kube-apiserver to test with; without it, it is looked for in
// PATH.
const binaryVariable = "SNOWGLOBE_KUBE_APISERVER"

// Timeouts of the program, in real time.
const (
	readyTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
	pollInterval = 100 * time.Millisecond
)

// findBinary skips the test if there is no kube-apiserver, and fails it if it is of
// another release than the linked one.
func findBinary(t *testing.T) string {
	t.Helper()
	binary := os.Getenv(binaryVariable)
	if binary == "" {
		var err error
		if binary, err = exec.LookPath("kube-apiserver"); err != nil {
			t.Skipf("%v; build one as docs/HACKING.md says, and name it in %s", err, binaryVariable)
		}
	}
	output, err := exec.CommandContext(t.Context(), binary, "--version").Output()
	require.NoError(t, err)
	modules, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	require.NoError(t, err)
	linked := regexp.MustCompile(`\tk8s\.io/kubernetes (v\S+)`).FindSubmatch(modules)
	require.Len(t, linked, 2, "go.mod requires k8s.io/kubernetes")
	require.Equal(t, "Kubernetes "+string(linked[1]), strings.TrimSpace(string(output)))
	return binary
}

// world is a kube-apiserver and all that it calls.
type world struct {
	t      *testing.T
	folder string // short: paths of sockets are

	clients *pki.Authority // signs the certificates of clients, kube-apiserver among them
	store   *etcd.Server

	admission  *webhook.Admission
	conversion *webhook.Conversion
	tokens     *webhook.TokenReview
	access     *webhook.SubjectAccessReview
	audit      *webhook.Audit
	issuer     *oidc.Issuer
	plugin     *kms.Plugin
	node       *kubelet.Kubelet
	nodePort   int
	widgets    *aggregated.Server
	apiPort    int                 // of the aggregated server
	overGRPC   *konnectivity.Proxy // to nodes and services
	overHTTP   *konnectivity.Proxy // to webhooks and the issuer

	admin *rest.Config
	kube  *kubernetes.Clientset
}

// start starts all fakes, and then the program.
func start(t *testing.T, binary string) *world {
	folder, err := os.MkdirTemp("", "stock")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	w := &world{t: t, folder: folder}
	w.clients, err = pki.NewAuthority("clients")
	require.NoError(t, err)
	w.startStore()
	w.startWebhooks()
	w.startRemotes()
	w.startProxies()
	w.startAPIServer(binary)
	return w
}

func (w *world) startStore() {
	listener, _ := w.listen()
	var err error
	w.store, err = etcd.New(etcd.Config{Endpoint: "http://" + listener.Addr().String()})
	require.NoError(w.t, err)
	served := make(chan error, 1)
	go func() { served <- w.store.Serve(listener) }()
	w.t.Cleanup(func() { assert.NoError(w.t, errors.Join(w.store.Close(), <-served)) })
}

func (w *world) startWebhooks() {
	var err error
	l, _ := w.listen()
	w.admission, err = webhook.ServeAdmission(l)
	w.started(w.admission, err)
	l, _ = w.listen()
	w.conversion, err = webhook.ServeConversion(l)
	w.started(w.conversion, err)
	w.conversion.HandleRest(nil)
	l, _ = w.listen()
	w.tokens, err = webhook.ServeTokenReview(l)
	w.started(w.tokens, err)
	l, _ = w.listen()
	w.access, err = webhook.ServeSubjectAccessReview(l)
	w.started(w.access, err)
	l, _ = w.listen()
	w.audit, err = webhook.ServeAudit(l)
	w.started(w.audit, err)
}

// startRemotes starts what is no webhook.
func (w *world) startRemotes() {
	l, _ := w.listen()
	var err error
	w.issuer, err = oidc.Serve(l)
	w.started(w.issuer, err)
	l, err = net.Listen("unix", filepath.Join(w.folder, "kms.sock"))
	require.NoError(w.t, err)
	w.plugin = kms.Serve(l, kms.Config{})
	w.started(w.plugin, nil)
	l, w.nodePort = w.listen()
	w.node, err = kubelet.Serve(l, kubelet.Config{ClientCA: w.clients.CertPEM()})
	w.started(w.node, err)
	l, w.apiPort = w.listen()
	w.widgets, err = aggregated.Serve(l, aggregated.Config{
		Hosts: []string{"widgets.default.svc"}, FrontProxyCA: w.clients.CertPEM(),
		Resources: []aggregated.Resource{{Group: "aggregated.example.com", Version: "v1", Plural: "flakes", Kind: "Flake", Namespaced: true}},
	})
	w.started(w.widgets, err)
}

func (w *world) startProxies() {
	listen := func(name string) net.Listener {
		l, err := net.Listen("unix", w.path(name))
		require.NoError(w.t, err)
		return l
	}
	w.overGRPC, w.overHTTP = konnectivity.New(), konnectivity.New()
	w.overGRPC.ServeGRPC(listen("grpc.sock"))
	w.overHTTP.ServeConnect(listen("http.sock"))
	for _, proxy := range []*konnectivity.Proxy{w.overGRPC, w.overHTTP} {
		proxy.Route("*", (&net.Dialer{}).DialContext)
		w.started(proxy, nil)
	}
}

// listen returns a listener on a free port.
func (w *world) listen() (net.Listener, int) {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	return l, l.Addr().(*net.TCPAddr).Port
}

// started stops a fake at the end, after the program.
func (w *world) started(fake interface{ Stop(context.Context) error }, err error) {
	w.t.Helper()
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		assert.NoError(w.t, fake.Stop(ctx))
	})
}

func (w *world) path(name string) string { return filepath.Join(w.folder, name) }

// file writes a file and returns its path.
func (w *world) file(name string, content []byte) string {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(w.path(name), content, 0o600))
	return w.path(name)
}

// pair writes a certificate and its key.
func (w *world) pair(name string, pair pki.Pair, err error) (cert, key string) {
	w.t.Helper()
	require.NoError(w.t, err)
	return w.file(name+".crt", pair.Cert), w.file(name+".key", pair.Key)
}

// flags are those of the program.
func (w *world) flags(port int) []string {
	w.t.Helper()
	serving, err := w.clients.Serving("127.0.0.1")
	servingCert, servingKey := w.pair("serving", serving, err)
	account, err := w.clients.Client("account")
	_, accountKey := w.pair("account", account, err)
	toKubelet, err := w.clients.Client("kube-apiserver", "system:masters")
	kubeletCert, kubeletKey := w.pair("kubelet-client", toKubelet, err)
	front, err := w.clients.Client("front-proxy")
	frontCert, frontKey := w.pair("front-proxy", front, err)
	ca := w.file("clients.crt", w.clients.CertPEM())
	encryption, err := w.plugin.EncryptionConfiguration("fake", 3*time.Second, "secrets")
	require.NoError(w.t, err)
	return []string{
		"--etcd-servers=" + w.store.Client().Endpoints()[0],
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file=" + servingCert, "--tls-private-key-file=" + servingKey, "--client-ca-file=" + ca,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + accountKey, "--service-account-signing-key-file=" + accountKey,
		"--disable-admission-plugins=ServiceAccount",
		"--requestheader-client-ca-file=" + ca, "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-allowed-names=front-proxy",
		"--proxy-client-cert-file=" + frontCert, "--proxy-client-key-file=" + frontKey,
		"--kubelet-certificate-authority=" + w.file("kubelet.crt", w.node.CA()), "--kubelet-client-certificate=" + kubeletCert, "--kubelet-client-key=" + kubeletKey,
		"--kubelet-preferred-address-types=InternalIP",
		"--egress-selector-config-file=" + w.file("egress.yaml", w.egress()),
		"--authentication-config=" + w.file("authentication.yaml", w.issuer.AuthenticationConfiguration("controlplane", audience)),
		"--authentication-token-webhook-config-file=" + w.file("tokens.kubeconfig", w.tokens.Kubeconfig()), "--authentication-token-webhook-version=v1",
		"--authorization-mode=RBAC,Webhook",
		"--authorization-webhook-config-file=" + w.file("access.kubeconfig", w.access.Kubeconfig()), "--authorization-webhook-version=v1",
		"--audit-webhook-config-file=" + w.file("audit.kubeconfig", w.audit.Kubeconfig()), "--audit-webhook-mode=blocking",
		"--audit-policy-file=" + w.file("policy.yaml", []byte(auditPolicy)),
		"--encryption-provider-config=" + w.file("encryption.yaml", encryption),
	}
}

// audience is the program's, in the tokens of the issuer.
const audience = "kubernetes"

// auditPolicy asks for what jane does.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata", "users": ["jane"]}]}`

// egress leads the networks through the two proxies.
func (w *world) egress() []byte {
	return konnectivity.EgressSelectorConfiguration(
		konnectivity.EgressSelection{Network: "cluster", Protocol: konnectivity.GRPC, Socket: w.path("grpc.sock")},
		konnectivity.EgressSelection{Network: "controlplane", Protocol: konnectivity.HTTPConnect, Socket: w.path("http.sock")},
	)
}

// startAPIServer runs the program until the end of the test.
func (w *world) startAPIServer(binary string) {
	free, port := w.listen()
	require.NoError(w.t, free.Close())
	var output bytes.Buffer
	command := exec.Command(binary, w.flags(port)...)
	command.Stdout, command.Stderr = &output, &output
	require.NoError(w.t, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	w.t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(stopTimeout):
			w.t.Errorf("the program has not ended %s after SIGTERM", stopTimeout)
			_ = command.Process.Kill()
			<-ended
		}
		if w.t.Failed() {
			w.t.Logf("the program says:\n%s", &output)
		}
	})
	pair, err := w.clients.Client("admin", "system:masters")
	require.NoError(w.t, err)
	w.admin = &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", port),
		TLSClientConfig: rest.TLSClientConfig{CAData: w.clients.CertPEM(), CertData: pair.Cert, KeyData: pair.Key},
	}
	w.kube, err = kubernetes.NewForConfig(w.admin)
	require.NoError(w.t, err)
	w.eventually(readyTimeout, func(ctx context.Context) error {
		select {
		case err := <-ended:
			ended <- err
			w.t.Fatalf("the program has ended: %v", err)
		default:
		}
		return w.kube.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// eventually does something until it succeeds: the program does not tell when it is so far.
func (w *world) eventually(limit time.Duration, do func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := do(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("not within %s: %v", limit, err)
		}
	}
}
