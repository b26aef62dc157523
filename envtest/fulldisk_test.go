package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/disk/disktest"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/internal/pages"
)

// TestFullDisk fills the disk of a control plane's etcd. The test that uses it fails, with one
// sentence, and the process lives.
func TestFullDisk(t *testing.T) {
	t.Parallel() // all of it is in another process
	disktest.Small(t, 200<<20, func(dir string, _ func()) {
		users := &recorder{TB: t, context: t.Context()}
		cp := envtest.Start(users, envtest.WithStore(embedded.New(embedded.Config{DataDir: filepath.Join(dir, "data")})))
		client := kubernetes.NewForConfigOrDie(cp.Config())
		disktest.Fill(t, dir, 1<<20)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			data := map[string]string{"falls": strings.Repeat("v", 500_000)}
			for i := 0; ctx.Err() == nil; i++ {
				snow := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("snow-%d", i)}, Data: data}
				_, _ = client.CoreV1().ConfigMaps("default").Create(ctx, snow, metav1.CreateOptions{})
			}
		}()
		select {
		case <-cp.Crashed():
		case <-ctx.Done():
			t.Fatal("the disk never fills up")
		}
		cancel()
		assert.ErrorContains(t, cp.Err(), "the store has failed: etcd can't write: the disk of", "crash")
		pages.Troubleshooting(t, "..", cp.Err().Error())
		began := time.Now()
		users.end()
		assert.LessOrEqual(t, time.Since(began), 20*time.Second, "what Stop took")
		want := []string{"the API server crashed during the test: " + cp.Err().Error()}
		got := users.errors
		assert.True(t, len(got) == 1 && got[0] == want[0], "errors of the test that used it:\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	})
}

// TestStartFullDisk starts where there is no room.
func TestStartFullDisk(t *testing.T) {
	disktest.Small(t, 16<<20, func(dir string, _ func()) {
		_, err := envtest.Launch(t.Context(), envtest.WithStore(embedded.New(embedded.Config{DataDir: dir})))
		require.True(t, err != nil && strings.HasPrefix(err.Error(), "start control plane: start embedded etcd: the disk of"), "start: %v", err)
		pages.Troubleshooting(t, "..", err.Error())
	})
}

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	context  context.Context
	cleanups []func()
	errors   []string
	logs     []string
}

func (r *recorder) Context() context.Context  { return r.context }
func (r *recorder) Cleanup(f func())          { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any)         { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.Error(fmt.Sprintf(f, a...)) }
func (r *recorder) Logf(f string, a ...any)   { r.logs = append(r.logs, fmt.Sprintf(f, a...)) }
func (r *recorder) Failed() bool              { return len(r.errors) > 0 }
func (r *recorder) Fatal(args ...any)         { r.TB.Fatal(errors.New(fmt.Sprint(args...))) }

func (r *recorder) end() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}
