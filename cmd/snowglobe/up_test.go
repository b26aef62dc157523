package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/envtest/serverflags"
	"snowglobe.test/internal/pages"
)

// TestUpControllers brings a Pod to run: a controller makes its service account, the
// scheduler binds it, and a node plays it.
func TestUpControllers(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	greeting, interrupt := launchUp(t, "--controllers", "--nodes", "1", "--kubeconfig", kubeconfig)
	defer interrupt()
	assert.Contains(t, greeting, "the admission plugin ServiceAccount is on")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	require.Eventually(t, func() bool { // until there is a service account
		_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		return err == nil
	}, waitTimeout, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		now, err := client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
		return err == nil && now.Status.Phase == corev1.PodRunning
	}, waitTimeout, 10*time.Millisecond)
}

// TestUpListen is at the address that it was given, and no other but loopback.
func TestUpListen(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skipf("this machine has no ::1: %v", err)
	} else {
		require.NoError(t, l.Close())
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	_, interrupt := launchUp(t, "--listen", "[::1]:0", "--kubeconfig", kubeconfig)
	defer interrupt()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	assert.Contains(t, config.Host, "https://[::1]:")
	_, err = kubernetes.NewForConfigOrDie(config).Discovery().ServerVersion()
	assert.NoError(t, err)
	var stderr bytes.Buffer
	refused := []string{"up", "--listen", "0.0.0.0:0", "--kubeconfig", kubeconfig + "2"}
	assert.Equal(t, exitUnjudged, execute(t.Context(), refused, io.Discard, &stderr))
	assert.Contains(t, stderr.String(), "loopback")
}

// TestMakesServiceAccounts goes through the ways to name controllers.
func TestMakesServiceAccounts(t *testing.T) {
	for _, test := range []struct {
		controllers []string
		want        bool
	}{
		{nil, false},
		{[]string{withDefault}, true},
		{[]string{"namespace", "garbage-collector-controller"}, false},
		{[]string{"serviceaccount"}, true},
		{[]string{"serviceaccount-controller"}, true},
	} {
		assert.Equal(t, test.want, upOptions{controllers: test.controllers}.makesServiceAccounts(), "%q", test.controllers)
	}
}

// TestWithServiceAccounts leaves the plugin to flags that speak of it.
func TestWithServiceAccounts(t *testing.T) {
	const enabled = "--enable-admission-plugins=ServiceAccount"
	for _, test := range []struct {
		flags []string
		added bool
	}{
		{nil, true},
		{[]string{"--v=4", "--enable-admission-plugins=NodeRestriction"}, true},
		{[]string{"--disable-admission-plugins", "PodSecurity,ResourceQuota"}, true},
		{[]string{"--disable-admission-plugins", "PodSecurity,ServiceAccount"}, false},
		{[]string{"--disable-admission-plugins=PodSecurity", "--disable-admission-plugins=ServiceAccount"}, false},
		{[]string{"--admission-control="}, false},
		{[]string{"--admission-control=PodSecurity"}, false},
	} {
		want := test.flags
		if test.added {
			want = append(test.flags[:len(test.flags):len(test.flags)], enabled)
		}
		assert.Equal(t, want, serverflags.WithServiceAccounts(test.flags))
	}
}

// TestUpStoreRefuses tells what is wrong with a store that does not answer, for how long it
// was asked, and what changes that.
func TestUpStoreRefuses(t *testing.T) {
	silent, _ := silentServer(t)
	for store, want := range map[string]string{
		"http://" + silent:   "; is that an etcd?",
		"http://127.0.0.1:1": "; is etcd running there?",
	} {
		for command, args := range map[string][]string{"up": {"--kubeconfig", filepath.Join(t.TempDir(), "kube")}, "conformance": nil} {
			var stderr bytes.Buffer
			args = append([]string{command, "--start-timeout", "600ms", "--store", store}, args...)
			assert.Equal(t, exitUnjudged, execute(t.Context(), args, io.Discard, &stderr), args)
			said := oneLine(t, stderr.String())
			assert.Contains(t, said, "external store: no answer within 200ms (DialTimeout, or a third of --start-timeout, gives it longer) from "+store)
			assert.Contains(t, said, want)
			assert.NotContains(t, said, "not within")
			pages.Troubleshooting(t, "../..", said)
		}
	}
}

// TestUpEndpoints gives the kubernetes Service the endpoints that docs/up.md says it gets.
func TestUpEndpoints(t *testing.T) {
	blocks, err := pages.Blocks("../..")
	require.NoError(t, err)
	var flags []string
	for _, block := range blocks {
		for _, line := range commandLines(string(block.Text)) {
			if _, after, ok := strings.Cut(line, " -- "); ok && filepath.Base(block.File) == "up.md" && strings.Contains(after, "--endpoint-reconciler-type") {
				flags = strings.Fields(after)
			}
		}
	}
	require.NotEmpty(t, flags, "docs/up.md has no such command")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	_, interrupt := launchUp(t, append([]string{"--kubeconfig", kubeconfig, "--"}, flags...)...)
	defer interrupt()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	var of discoveryv1.EndpointSlice
	require.Eventually(t, func() bool { // the server adds itself once it is ready
		slices, err := client.DiscoveryV1().EndpointSlices("default").List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
		if err != nil || len(slices.Items) != 1 || len(slices.Items[0].Endpoints) != 1 {
			return false
		}
		of = slices.Items[0]
		return true
	}, waitTimeout, 10*time.Millisecond)
	assert.Contains(t, flags, "--advertise-address="+of.Endpoints[0].Addresses[0])
	assert.True(t, strings.HasSuffix(config.Host, fmt.Sprintf(":%d", *of.Ports[0].Port)), "%s, but the port is %d", config.Host, *of.Ports[0].Port)
}

// launchUp runs "snowglobe up" until interrupt is called, and returns what it says first.
func launchUp(t *testing.T, args ...string) (greeting string, interrupt func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	var stderr bytes.Buffer
	read, stdout := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, append([]string{"up"}, args...), stdout, &stderr)
		_ = stdout.Close()
	}()
	lines := bufio.NewScanner(read)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Ctrl-C") {
		greeting += lines.Text() + "\n"
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	return greeting, func() {
		t.Helper()
		cancel(errInterrupted)
		assert.Equal(t, exitOK, <-code, "%s", &stderr)
	}
}

// TestStopError tells of a bad end after an interrupt, and of nothing else.
func TestStopError(t *testing.T) {
	for want, err := range map[int]error{exitBroken: verdict(&stopError{io.ErrUnexpectedEOF}), exitInterrupted: failed(io.ErrUnexpectedEOF)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errInterrupted)
		var stderr bytes.Buffer
		assert.Equal(t, want, exitCode(&stderr, "snowglobe up", afterAll(ctx, err)), "%s", &stderr)
	}
}

// TestUpRefusesControllers names a controller that is none before anything starts.
func TestUpRefusesControllers(t *testing.T) {
	for want, args := range map[string][]string{
		`--controllers: kube-controller-manager has no controller "deploymnet"; did you mean deployment?`: {"--controllers=deploymnet"},
		"--nodes -1 is not a number of nodes": {"--nodes=-1"},
	} {
		var stderr bytes.Buffer
		assert.Equal(t, exitUnjudged, execute(t.Context(), append([]string{"up"}, args...), io.Discard, &stderr))
		assert.Contains(t, stderr.String(), want)
	}
}
