package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	crenvtest "snowglobe.test/envtest/controllerruntime/envtest"
	"snowglobe.test/envtest/sim/seeds"
	"snowglobe.test/internal/listeners"
	"snowglobe.test/internal/tempdir"
)

// listLibraries runs in this process what listens in a user's tests.
func listLibraries(t *testing.T) map[string][]listeners.Listener {
	all := map[string][]listeners.Listener{}
	before := listenersOf(t, os.Getpid())

	folder, err := tempdir.Make("exposure") // as snowglobe test does
	require.NoError(t, err)
	search, err := seeds.Begin(t.Context(), folder.Path(), 1, func(seeds.Result) {})
	require.NoError(t, err)
	all["`snowglobe test --seeds`"] = added(t, before)
	t.Cleanup(func() {
		search.End()
		assert.NoError(t, folder.Remove())
	})

	before = listenersOf(t, os.Getpid())
	environment := &crenvtest.Environment{}
	_, err = environment.Start()
	require.NoError(t, err)
	all["`controllerruntime/envtest.Environment`"] = added(t, before)
	t.Cleanup(func() { assert.NoError(t, environment.Stop()) })

	before = listenersOf(t, os.Getpid())
	cp, err := envtest.Launch(t.Context(), envtest.WithListener("127.0.0.1:0"))
	require.NoError(t, err)
	all["a control plane of `envtest`, `WithListener`"] = added(t, before)
	t.Cleanup(func() { assert.NoError(t, cp.Stop(context.WithoutCancel(t.Context()))) })
	return all
}

// listCommands runs the commands that listen while they do something else.
func listCommands(t *testing.T) map[string][]listeners.Listener {
	all := map[string][]listeners.Listener{}
	bench := runProgram(t, "snowglobe", "bench", "watch", "--transport", "tls", "--duration", "10m")
	all["`snowglobe bench watch --transport tls`"] = awaitListener(t, bench.pid)
	baseline := runProgram(t, "snowglobe", "bench", "watch", "--transport", "http2", "--duration", "10m")
	all["`snowglobe bench watch --transport http2`, or `--baselines`"] = awaitListener(t, baseline.pid)
	converted := runProgram(t, "snowglobe", "bench", "watch", "--resource", "converted-widgets", "--transport", "process", "--duration", "10m")
	all["`snowglobe bench watch --resource converted-widgets`"] = awaitListener(t, converted.pid)

	folder := t.TempDir()
	require.NoError(t, os.Chmod(folder, 0o700))
	kubeconfig := filepath.Join(folder, "kubeconfig")
	up := runProgram(t, "snowglobe", "up", "--kubeconfig", kubeconfig)
	up.says(t, "Kubernetes ")
	proxy := runProgram(t, "kubectl", "--kubeconfig", kubeconfig, "proxy", "--port", "0")
	proxy.says(t, "Starting to serve on ")
	all["`kubectl proxy` of `snowglobe assets`"] = listenersOf(t, proxy.pid)
	return all
}
