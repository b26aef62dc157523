package envtest_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/external"
)

// TestLaunchRefuses gives Launch what it must refuse: one clear error each, and
// nothing left of the attempt.
func TestLaunchRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	unreachable, err := external.New(external.Config{URLs: []string{"http://127.0.0.1:1"}, DialTimeout: time.Second})
	require.NoError(t, err)
	pod := writeFile(t, filepath.Join(t.TempDir(), "pod.yaml"), "apiVersion: v1\nkind: Pod\n")
	kubeconfig := writeFile(t, filepath.Join(t.TempDir(), "kubeconfig"), "precious")

	noHook := func(context.Context, *rest.Config) error { return nil }

	tests := map[string]struct {
		opts []envtest.Option
		want []string
	}{
		"unknown flag":        {opt(envtest.WithFlags("--no-such-flag")), []string{"unknown flag: --no-such-flag"}},
		"unknown gate":        {opt(envtest.WithFlags("--feature-gates=NoSuchGate=true")), []string{"unrecognized feature gate: NoSuchGate"}},
		"bad flag value":      {opt(envtest.WithFlags("--service-cluster-ip-range=banana")), []string{"service-cluster-ip-range"}},
		"unknown plugin":      {opt(envtest.WithFlags("--enable-admission-plugins=NoSuch")), []string{"NoSuch"}},
		"audit policy":        {opt(envtest.WithFlags("--audit-policy-file=no/such/file")), []string{"no/such/file"}},
		"owned flag":          {opt(envtest.WithFlags("--etcd-servers=http://127.0.0.1:2379")), []string{"--etcd-servers", "store"}},
		"word":                {opt(envtest.WithFlags("banana")), []string{`"banana" is not a flag`}},
		"CRD that is none":    {opt(envtest.WithCRDPaths(pod)), []string{"pod.yaml", "holds no CustomResourceDefinition"}},
		"missing folder":      {opt(envtest.WithCRDPaths("no/such/folder")), []string{"no/such/folder"}},
		"taken port":          {opt(envtest.WithListener(taken.Addr().String())), []string{taken.Addr().String(), "choose another port"}},
		"public address":      {opt(envtest.WithListener("0.0.0.0:0")), []string{"not on loopback"}},
		"kubeconfig there":    {opt(envtest.WithKubeconfig(kubeconfig)), []string{kubeconfig, "exists already"}},
		"unreachable store":   {opt(envtest.WithStore(unreachable)), []string{"http://127.0.0.1:1", "is etcd running there?"}},
		"two hooks of a name": {opt(envtest.WithPostStartHook("a", noHook), envtest.WithPostStartHook("a", noHook)), []string{`two post-start hooks "a"`}},
		"hook of upstream's":  {opt(envtest.WithPostStartHook("crd-informer-synced", noHook)), []string{`post-start hook "crd-informer-synced": upstream has one of that name; choose another`}},
		"no such signal":      {opt(envtest.WithFaults("fire signal/HasBeenRead by=1s")), []string{`unknown point "signal/HasBeenRead"`, "HasBeenReady"}},
		"rule of no stage":    {opt(envtest.WithFaults("fail stage/aggregate with=error")), []string{`unknown point "stage/aggregate"`, "did you mean stage/aggregator?"}},
		"rule of no hook":     {opt(envtest.WithFaults("hold hook/crd-informer-sync")), []string{`unknown point "hook/crd-informer-sync"`, "did you mean hook/crd-informer-synced?"}},
		"rule of no signal":   {opt(envtest.WithFaults("drop signal/HasBeenRead")), []string{`unknown point "signal/HasBeenRead"`, "did you mean signal/HasBeenReady?"}},
		"rule of no resource": {opt(envtest.WithFaults("fail store/put resource=deployment.apps with=unavailable")), []string{`unknown resource "deployment.apps"`, "did you mean deployments.apps?"}},
		"rule of two":         {opt(envtest.WithFaults("hold hook/crd-informer-synced", "fail store/put wit=unavailable")), []string{`WithFaults: "fail store/put wit=unavailable":1:16: unknown key "wit"`}},
		"rule of a plan":      {opt(envtest.WithFaults("hold hook/crd-informer-synced\nfail store/put wit=unavailable")), []string{`WithFaults:2:16: unknown key "wit"`}},
		"failing hook":        {opt(envtest.WithFaults("fail hook/crd-informer-synced with=error")), []string{`post-start hook "crd-informer-synced" failed: injected at hook/crd-informer-synced`}},
		"nonsense of a hook":  {opt(envtest.WithFaults("delay hook/crd-informer-synced by=-1s")), []string{"by= is a time above 0"}},
		"order in real time":  {opt(envtest.WithOrder("store/put")), []string{"virtual time"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { refused(t, test.opts, test.want...) })
	}
}

// refused wants a start to fail with one line that contains all of want, and to leave nothing.
func refused(t *testing.T, opts []envtest.Option, want ...string) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	cp, err := envtest.Launch(t.Context(), opts...)
	if err == nil {
		_ = cp.Stop(t.Context())
		t.Fatal("it started")
	}
	for _, part := range want {
		assert.Contains(t, err.Error(), part)
	}
	assert.NotContains(t, err.Error(), "\n", "the error is longer than a line")
	goleak.VerifyNone(t, before)
}

// TestStagesRefuse gives flags that upstream's own code refuses, in the stage that it names.
func TestStagesRefuse(t *testing.T) {
	nonsense := writeFile(t, filepath.Join(t.TempDir(), "nonsense"), "nonsense\n")
	const missing = "no/such/file"
	for _, test := range []struct{ flags, stage, want string }{
		{"--tls-cert-file=" + missing + " --tls-private-key-file=" + missing, "options", "--tls-cert-file: open no/such/file"},
		{"--tls-cert-file=" + nonsense + " --tls-private-key-file=" + nonsense, "options", "--tls-cert-file: " + nonsense},
		{"--tls-sni-cert-key=" + missing + "," + missing, "options", "--tls-sni-cert-key: open no/such/file"},
		{"--client-ca-file=" + missing, "options", "client CA: open no/such/file"},
		{"--requestheader-client-ca-file=" + missing, "options", "--requestheader-client-ca-file: open no/such/file"},
		{"--requestheader-client-ca-file=" + nonsense, "options", "--requestheader-client-ca-file: " + nonsense},
		{"--proxy-client-cert-file=" + missing + " --proxy-client-key-file=" + missing, "options", "--proxy-client-cert-file: open no/such/file"},
		{"--kubelet-client-certificate=" + missing + " --kubelet-client-key=" + missing, "options", "--kubelet-client-certificate: open no/such/file"},
		{"--kubelet-certificate-authority=" + missing, "options", "--kubelet-certificate-authority: open no/such/file"},
		{"--endpoint-reconciler-type=lease --advertise-address=127.0.0.1", "options", `--endpoint-reconciler-type=lease: --advertise-address: Invalid value: "127.0.0.1": may not be in the loopback range`},
		{"--endpoint-reconciler-type=master-count --advertise-address=127.0.0.1", "options", "may not be in the loopback range"},
		{"--authorization-config=" + missing, "options", missing},
		{"--service-account-signing-key-file=" + missing, "options", missing},
		{"--service-cluster-ip-range=10.0.0.0/31", "options", "at least 8 IP addresses"},
		{"--runtime-config=nonsense/v1=true", "options", "unknown api groups nonsense/v1"},
		{"--runtime-config=api/v1=false", "generic", "--runtime-config turns off api/v1"},
		{"--tls-min-version=VersionTLS99", "generic", `unknown tls version "VersionTLS99"`},
		{"--tls-cipher-suites=none", "generic", "Cipher suite none not supported"},
		{"--token-auth-file=" + missing, "generic", missing},
		{"--authentication-config=" + nonsense, "generic", nonsense},
		{"--authentication-token-webhook-config-file=" + missing, "generic", missing},
		{"--authorization-mode=Webhook --authorization-webhook-config-file=" + missing, "generic", missing},
		{"--authorization-mode=ABAC --authorization-policy-file=" + missing, "generic", missing},
		{"--audit-policy-file=" + nonsense, "generic", "failed decoding"},
		{"--encryption-provider-config=" + nonsense, "generic", nonsense},
		{"--egress-selector-config-file=" + missing, "generic", missing},
		{"--tracing-config-file=" + missing, "generic", missing},
		{"--oidc-issuer-url=https://127.0.0.1:1 --oidc-client-id=a --oidc-ca-file=" + missing, "generic", missing},
		{"--admission-control-config-file=" + missing, "kube-apiserver-config", missing},
		{"--runtime-config=apiextensions.k8s.io/v7=true", "apiextensions-config", "group version apiextensions.k8s.io/v7 that has not been registered"},
		{"--runtime-config=apiregistration.k8s.io/v7=true", "aggregator-config", "group version apiregistration.k8s.io/v7 that has not been registered"},
		{"--peer-ca-file=" + nonsense + " --feature-gates=UnknownVersionInteroperabilityProxy=true", "options", "--peer-ca-file: " + nonsense},
	} {
		t.Run(test.flags, func(t *testing.T) {
			refused(t, opt(envtest.WithFlags(strings.Fields(test.flags)...)), "start chain: stage "+test.stage+": ", test.want)
		})
	}
}

func opt(opts ...envtest.Option) []envtest.Option { return opts }

// TestHeldHookIsNamed waits for readiness that can't come.
func TestHeldHookIsNamed(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := cp.WaitReady(ctx)
		require.Error(t, err, "ready with a held hook")
		for _, want := range []string{"checks that are red: poststarthook/crd-informer-synced", "hooks that are held: crd-informer-synced"} {
			assert.Contains(t, err.Error(), want)
		}
		assert.NoError(t, cp.Faults().Release("hook/crd-informer-synced"))
		assert.NoError(t, cp.WaitReady(t.Context()))
		assert.Error(t, cp.Faults().Release("hook/crd-informer-synced"), "a hook was released twice")
	}, envtest.WithFaults("hold hook/crd-informer-synced"))
}

// TestPatience goes on releasing what a failed start has left when the start's time is up, and
// when its caller had given it up before; not when the caller gives that up.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		patient, forget := envtest.Patience(limited)
		defer forget()
		time.Sleep(2 * time.Minute)
		assert.NoError(t, patient.Err(), "its time is up")

		given, cancel := context.WithCancel(t.Context())
		patient, forget = envtest.Patience(given)
		defer forget()
		cancel()
		synctest.Wait()
		assert.ErrorIs(t, patient.Err(), context.Canceled)
		patient, forget = envtest.Patience(given)
		defer forget()
		synctest.Wait()
		assert.NoError(t, patient.Err(), "it was given up before")
	})
}
