package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// runChild executes this program again.
func runChild(ctx context.Context, request childRequest) (childAnswer, error) {
	program, err := os.Executable()
	if err != nil {
		return childAnswer{}, fmt.Errorf("find this program, to measure in a process of its own: %w", err)
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
		return childAnswer{}, fmt.Errorf("measure in a process of its own: %w: %s", err, tail(stderr.String()))
	}
	var answer childAnswer
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil || len(answer.Starts) != request.Boots {
		return childAnswer{}, fmt.Errorf("the process printed %q instead of measurements; does main call bench.StartupChild when bench.StartupRequested?", tail(stdout.String()))
	}
	return answer, nil
}

// endDelay is how long a child that was interrupted may take to stop what it
// started before it is killed. Envtest gives each of its processes 20 s.
const endDelay = time.Minute

// childEnvironment is that of this process without what makes envtest run other
// binaries, or none, or chatter on standard output.
func childEnvironment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "KUBEBUILDER_") || strings.HasPrefix(variable, "TEST_ASSET_") || strings.HasPrefix(variable, "USE_EXISTING_CLUSTER=") {
			continue
		}
		kept = append(kept, variable)
	}
	return kept
}

// tail keeps what fits in an error message, the end of it.
func tail(text string) string {
	const limit = 2000
	text = strings.TrimSpace(text)
	if len(text) > limit {
		text = "..." + text[len(text)-limit:]
	}
	return text
}
