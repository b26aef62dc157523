package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// stockFolder names the folder with stock programs: kubectl, helm, kube-controller-manager
// and kube-scheduler. docs/HACKING.md says how to build them.
const stockFolder = "SNOWGLOBE_PROGRAMS"

// stockPatience is how long stock programs may take for what they do by themselves.
const stockPatience = time.Minute

func stockProgram(t *testing.T, name string) string {
	t.Helper()
	folder := os.Getenv(stockFolder)
	if folder == "" {
		t.Skipf("%s names no folder with %s", stockFolder, name)
	}
	program, err := filepath.Abs(filepath.Join(folder, name))
	require.NoError(t, err)
	require.FileExists(t, program)
	return program
}

// TestStockClients installs, upgrades, rolls back and removes a chart with a definition, a
// Deployment and a hook, by helm, and a kustomization by kubectl.
func TestStockClients(t *testing.T) {
	helm, kubectl := stockProgram(t, "helm"), stockProgram(t, "kubectl")
	home := t.TempDir()
	kubeconfig := filepath.Join(home, "kubeconfig")
	_, interrupt := launchUp(t, "--controllers", "--nodes", "2", "--kubeconfig", kubeconfig)
	defer interrupt()
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %q: %s", program, args, out)
		return string(out)
	}
	ready := func() string {
		return run(kubectl, "get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}")
	}
	chart := filepath.Join("testdata", "stock", "chart")
	run(helm, "install", "snow", chart, "--wait", "--timeout", "1m")
	assert.Equal(t, "2", ready())
	run(helm, "upgrade", "snow", chart, "--set", "depth=2,replicas=3", "--wait", "--timeout", "1m")
	assert.Equal(t, "3", ready())
	assert.Equal(t, "2", run(kubectl, "get", "drift", "first", "-o", "jsonpath={.spec.depth}"))
	run(helm, "rollback", "snow", "1", "--wait", "--timeout", "1m")
	assert.Equal(t, "2", ready())
	run(helm, "uninstall", "snow", "--wait", "--timeout", "1m")
	assert.Contains(t, run(kubectl, "get", "drifts,deployments"), "No resources found")

	kustomization := filepath.Join("testdata", "stock", "kustomization")
	assert.Contains(t, run(kubectl, "apply", "-k", kustomization), "configmap/pre-a created")
	assert.Contains(t, run(kubectl, "delete", "-k", kustomization), `configmap "pre-a" deleted`)
}

// TestStockControllers runs kube-controller-manager and kube-scheduler against a control
// plane that stops and starts again on its data folder: they go on, by the kubeconfig and
// the tokens that they had.
func TestStockControllers(t *testing.T) {
	manager, scheduler := stockProgram(t, "kube-controller-manager"), stockProgram(t, "kube-scheduler")
	folder := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	require.NoError(t, listener.Close())
	data, kubeconfig := filepath.Join(folder, "data"), filepath.Join(folder, "kubeconfig")
	up := func() (interrupt func()) {
		_, interrupt = launchUp(t, "--store", "embedded", "--data-dir", data, "--port", port, "--kubeconfig", kubeconfig, "--", "--enable-admission-plugins=ServiceAccount")
		return interrupt
	}
	interrupt := up()
	kept := filepath.Join(folder, "kept") // that of "up" goes with it
	content, err := os.ReadFile(kubeconfig)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(kept, content, 0o600))
	pki := filepath.Join(data, "pki")
	defer launchStock(t, manager, "--kubeconfig", kept, "--use-service-account-credentials", "--leader-elect=false", "--secure-port=0",
		"--root-ca-file", filepath.Join(pki, "ca.crt"), "--service-account-private-key-file", filepath.Join(pki, "sa.key"),
		"--cluster-signing-cert-file", filepath.Join(pki, "ca.crt"), "--cluster-signing-key-file", filepath.Join(pki, "ca.key"))()
	defer launchStock(t, scheduler, "--kubeconfig", kept, "--leader-elect=false", "--secure-port=0")()

	config, err := clientcmd.BuildConfigFromFlags("", kept)
	require.NoError(t, err)
	client := kubernetes.NewForConfigOrDie(config)
	addNode(t, client)
	labels := map[string]string{"app": "web"}
	_, err = client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	bound := func(count int) {
		t.Helper()
		require.Eventually(t, func() bool {
			pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
			return err == nil && len(pods.Items) == count && !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" })
		}, stockPatience, 100*time.Millisecond)
	}
	bound(1)
	interrupt()
	defer up()()
	_, err = client.AppsV1().Deployments("default").Patch(t.Context(), "web", "application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	bound(3)
}

// launchStock runs a stock program until the function it returns is called. It must not end
// by itself.
func launchStock(t *testing.T, program string, args ...string) (stop func()) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return func() {
		select {
		case err := <-ended:
			t.Errorf("%s has ended: %v\n%s", filepath.Base(program), err, &log)
		default:
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(program), &log)
		}
	}
}

// addNode adds a node that is ready, without anything behind it.
func addNode(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	node, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
	_, err = client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().Nodes().Patch(t.Context(), "node-0", "application/merge-patch+json", []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}
