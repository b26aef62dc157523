package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
)

func runChild(ctx context.Context, request childRequest) (childAnswer, error) {
	program, err := os.Executable()
	if err != nil {
		return childAnswer{}, fmt.Errorf("find this program, to execute it as a child: %w", err)
	}
	var stdout, stderr bytes.Buffer
	child := exec.CommandContext(ctx, program)
	child.Stdout, child.Stderr = &stdout, &stderr
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	child.WaitDelay = endDelay
	request.Executed = time.Now()
	text, err := json.Marshal(request)
	if err != nil {
		return childAnswer{}, err
	}
	child.Env = append(childEnvironment(), childVariable+"="+string(text))
	if err := child.Run(); err != nil {
		return childAnswer{}, fmt.Errorf("measure in a child process: %w: %s", err, tail(stderr.String()))
	}
	var answer childAnswer
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil || len(answer.Starts) != request.Boots {
		return childAnswer{}, fmt.Errorf("the child process printed %q instead of measurements; does main call bench.StartupChild when bench.StartupRequested?", tail(stdout.String()))
	}
	return answer, nil
}

// endDelay is how long an interrupted child may take to stop what it started before it
// is killed. Envtest gives each of its processes 20 s.
const endDelay = time.Minute

// childEnvironment is this process's environment without the variables that make
// envtest run other binaries, use an existing cluster, or write to standard output.
func childEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "KUBEBUILDER_") || strings.HasPrefix(variable, "TEST_ASSET_") || strings.HasPrefix(variable, "USE_EXISTING_CLUSTER=")
	})
}

// tail returns the end of a text, short enough for an error message.
func tail(text string) string {
	const limit = 2000
	text = strings.TrimSpace(text)
	if len(text) > limit {
		text = "..." + text[len(text)-limit:]
	}
	return text
}

// childVariable is the environment variable that carries a childRequest.
const childVariable = "SNOWGLOBE_BENCH_STARTUP"

// childRequest is what a process measures: ours on a store, or envtest on binaries.
type childRequest struct {
	Store    string    `json:"store,omitempty"`
	Binaries string    `json:"binaries,omitempty"`
	Boots    int       `json:"boots"`
	Profile  string    `json:"profile,omitempty"`
	Executed time.Time `json:"executed"`
}

// childAnswer is the line the process prints.
type childAnswer struct {
	Load   time.Duration   `json:"loadNS"`
	Starts []time.Duration `json:"startsNS"`
	Stops  []time.Duration `json:"stopsNS"`
}

// StartupRequested reports whether Startup executed this process. If so, main must
// call StartupChild and do nothing else.
func StartupRequested() bool { return os.Getenv(childVariable) != "" }

// StartupChild measures what Startup asks for, and writes it to w: standard output.
func StartupChild(ctx context.Context, w io.Writer) error {
	begun := time.Now()
	var request childRequest
	if err := json.Unmarshal([]byte(os.Getenv(childVariable)), &request); err != nil {
		return fmt.Errorf("bench startup: read the environment variable %s: %w", childVariable, err)
	}
	answer := childAnswer{Load: begun.Sub(request.Executed)}
	for number := range request.Boots {
		start, stop, err := request.boot(ctx, number+1)
		if err != nil {
			return fmt.Errorf("boot %d: %w", number+1, err)
		}
		answer.Starts, answer.Stops = append(answer.Starts, start), append(answer.Stops, stop)
	}
	return json.NewEncoder(w).Encode(answer)
}

func (r childRequest) boot(ctx context.Context, number int) (start, stop time.Duration, err error) {
	if r.Binaries != "" {
		return bootEnvtest(ctx, r.Binaries)
	}
	endProfile := func() error { return nil }
	if r.Profile != "" {
		if endProfile, err = profile(filepath.Join(r.Profile, fmt.Sprintf("boot-%d.pprof", number))); err != nil {
			return 0, 0, err
		}
	}
	begun := time.Now()
	cp, err := envtest.Launch(ctx, onStore(r.Store)...)
	if err != nil {
		return 0, 0, errors.Join(err, endProfile())
	}
	err = awaitDefaultNamespace(ctx, cp.Config())
	start = time.Since(begun)
	err = errors.Join(err, endProfile())
	begun = time.Now()
	err = errors.Join(err, cp.Stop(context.WithoutCancel(ctx)))
	return start, time.Since(begun), err
}

// awaitDefaultNamespace waits as envtest's Start does, but by watching.
func awaitDefaultNamespace(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	stream, err := client.CoreV1().Namespaces().Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: corev1.NamespaceDefault}))
	if err != nil {
		return fmt.Errorf("wait for the default namespace: %w", err)
	}
	defer stream.Stop()
	if event := <-stream.ResultChan(); event.Type != watch.Added {
		return fmt.Errorf("wait for the default namespace: the watch ended with %q: %w", event.Type, context.Cause(ctx))
	}
	return nil
}

// profile writes a CPU profile until the returned function is called.
func profile(path string) (end func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
