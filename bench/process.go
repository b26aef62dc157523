package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// runChild executes this program again.
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
