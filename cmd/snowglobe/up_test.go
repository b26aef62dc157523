package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestUpControllers brings a Pod to run: a controller makes its service account, the
// scheduler binds it, and a node plays it.
func TestUpControllers(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	ctx, interrupt := context.WithCancelCause(t.Context())
	var stderr bytes.Buffer
	read, stdout := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, []string{"up", "--controllers", "--nodes", "1", "--kubeconfig", kubeconfig}, stdout, &stderr)
		_ = stdout.Close()
	}()
	var greeting strings.Builder
	for lines := bufio.NewScanner(read); lines.Scan() && !strings.HasPrefix(lines.Text(), "Ctrl-C"); {
		fmt.Fprintln(&greeting, lines.Text())
	}
	if !assert.Contains(t, greeting.String(), "the admission plugin ServiceAccount is on") {
		t.Fatalf("exit code %d: %s", <-code, &stderr)
	}
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
	go func() { _, _ = io.Copy(io.Discard, read) }()
	interrupt(errInterrupted)
	assert.Equal(t, exitOK, <-code, "%s", &stderr)
}

// TestStopError tells of a bad end after an interrupt, and of nothing else.
func TestStopError(t *testing.T) {
	for want, err := range map[int]error{exitFailed: failed(&stopError{io.ErrUnexpectedEOF}), exitInterrupted: failed(io.ErrUnexpectedEOF)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errInterrupted)
		var stderr bytes.Buffer
		assert.Equal(t, want, exitCode(&stderr, "snowglobe up", afterAll(ctx, err)), "%s", &stderr)
	}
}

// TestUpRefusesControllers names a controller that is none before anything starts.
func TestUpRefusesControllers(t *testing.T) {
	for want, args := range map[string][]string{
		`--controllers: kube-controller-manager has no controller "deploymnet"`: {"--controllers=deploymnet"},
		"--nodes -1 is not a number of nodes":                                   {"--nodes=-1"},
	} {
		var stderr bytes.Buffer
		assert.Equal(t, exitUsage, execute(t.Context(), append([]string{"up"}, args...), io.Discard, &stderr))
		assert.Contains(t, stderr.String(), want)
	}
}
