package envtest_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/chain"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/pki"
)

func init() {
	pointTests["stage/<stage>"] = pointTest{show: showStage, alone: true}
}

// restarting begins to restart a server, which stays at a held stage.
func restarting(t testing.TB, cp *envtest.ControlPlane, stage string) (gate *fault.Gate, restarted <-chan error) {
	t.Helper()
	server, done := cp.Servers()[0], make(chan error, 1)
	require.NoError(t, server.Stop(t.Context()))
	gate = gateOf(t, cp, "stage/"+stage)
	go func() { done <- server.Restart(t.Context()) }()
	op := awaitOne(t, gate)
	assert.Equal(t, fault.Operation{Point: "stage/" + stage, Phase: fault.Before, Server: "apiserver-0", Occurrence: 1}, op)
	return gate, done
}

func showStage(t testing.TB, cp *envtest.ControlPlane) {
	gate, restarted := restarting(t, cp, "aggregator")
	before := len(cp.Trace().Records())
	gate.Release(1)
	require.NoError(t, <-restarted)
	require.NoError(t, cp.WaitReady(t.Context()))
	var entered []string
	for _, r := range cp.Trace().Records()[before:] {
		if s, ok := r.Event.(trace.Stage); ok && s.Phase == trace.Start {
			entered = append(entered, s.Name)
		}
	}
	assert.Equal(t, []string{"aggregator", "prepare", "hooks", "run"}, entered)

	for _, stage := range []string{"options", "aggregator", "run"} {
		rule := "crash stage/" + stage
		err := startError(t, rule)
		assert.ErrorIs(t, err, fault.ErrCrashed)
		assert.ErrorContains(t, err, rule)
	}
}

// TestStopAtStage stops a control plane while its server is held before a stage:
// what is held goes on to its end, and nothing has failed.
func TestStopAtStage(t *testing.T) {
	for _, stage := range []string{"options", "aggregator", "run"} {
		t.Run(stage, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cp := launched(t)
				_, restarted := restarting(t, cp, stage)
				began := time.Now()
				assert.NoError(t, cp.Stop(t.Context()))
				assert.ErrorContains(t, <-restarted, "the control plane was stopped")
				assert.NoError(t, cp.Err())
				assert.Less(t, time.Since(began), 5*time.Second)
			})
		})
	}
}

// failAt starts a control plane that fails at a stage.
func failAt(t *testing.T, stage string, opts ...envtest.Option) {
	rule := "fail stage/" + stage + " with=error"
	var last trace.Stage
	_, err := envtest.Launch(t.Context(), append(opts, envtest.WithFaults(rule), envtest.WithObserver(func(r trace.Record) {
		if s, ok := r.Event.(trace.Stage); ok {
			last = s
		}
	}))...)
	require.Error(t, err)
	assert.ErrorContains(t, err, "start chain: stage "+stage+": injected at stage/"+stage)
	assert.ErrorContains(t, err, rule)
	assert.NotContains(t, err.Error(), "\n", "more went wrong than was meant to")
	assert.Equal(t, stage, last.Name)
	assert.Error(t, last.Err)
}

// TestFailAtStage fails each stage in turn, and leaves nothing, neither in real
// time nor in a bubble, which would not end.
func TestFailAtStage(t *testing.T) {
	for _, stage := range chain.Stages() {
		t.Run(stage, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			failAt(t, stage)
			goleak.VerifyNone(t, before)
		})
		t.Run(stage+" in a bubble", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				failAt(t, stage)
				assert.Less(t, time.Since(began), time.Second)
			})
		})
	}
}

// TestFailAtStageWithFlags fails stages of servers with flags that start more.
func TestFailAtStageWithFlags(t *testing.T) {
	authority, err := pki.NewAuthority("peers")
	require.NoError(t, err)
	ca := writeFile(t, filepath.Join(t.TempDir(), "ca.crt"), string(authority.CertPEM()))
	encryption := writeFile(t, filepath.Join(t.TempDir(), "encryption.yaml"),
		"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: [{resources: [secrets], providers: [{identity: {}}]}]\n")
	flags := envtest.WithFlags("--requestheader-client-ca-file="+ca, "--requestheader-username-headers=X-User",
		"--encryption-provider-config="+encryption, "--encryption-provider-config-automatic-reload=true",
		"--endpoint-reconciler-type=lease", "--advertise-address=192.0.2.1")
	for _, stage := range chain.Stages() {
		t.Run(stage, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			failAt(t, stage, flags)
			goleak.VerifyNone(t, before)
		})
	}
}

// TestRefusedFileLeavesNothing starts a server with a file that upstream refuses in the middle
// of a stage, when it has made a client of the store that nobody will close.
func TestRefusedFileLeavesNothing(t *testing.T) {
	unreadable := writeFile(t, filepath.Join(t.TempDir(), "admission.yaml"), "kind: Nonsense\n")
	fails := func(t *testing.T) {
		_, err := envtest.Launch(t.Context(), envtest.WithFlags("--admission-control-config-file="+unreadable))
		require.ErrorContains(t, err, "start chain: stage kube-apiserver-config: failed to apply admission")
		assert.NotContains(t, err.Error(), "goroutines", "more went wrong than was meant to")
	}
	before := goleak.IgnoreCurrent()
	fails(t)
	goleak.VerifyNone(t, before)
	synctest.Test(t, fails)
}
