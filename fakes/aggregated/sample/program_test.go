package sample

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience is how long a program may take to say something, on a machine that does much else.
const patience = 2 * time.Minute

// program is one that runs until the test ends.
type program struct {
	command *exec.Cmd
	ended   chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
	wrote  chan struct{} // has something when the output has grown
}

// start runs a program, and returns when it has said something.
func start(t *testing.T, says, name string, args ...string) *program {
	t.Helper()
	p := &program{command: exec.Command(name, args...), ended: make(chan struct{}), wrote: make(chan struct{}, 1)} //nolint:noctx // it is interrupted
	p.command.Stdout, p.command.Stderr = p, p
	require.NoError(t, p.command.Start())
	var err error
	go func() {
		defer close(p.ended)
		err = p.command.Wait()
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Signal(os.Interrupt)
		<-p.ended
		if t.Failed() {
			t.Logf("%s ended with %v:\n%s", name, err, p.said())
		}
	})
	p.await(t, says)
	return p
}

var _ io.Writer = (*program)(nil)

// Write implements io.Writer: it is the program's output.
func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.wrote <- struct{}{}:
	default:
	}
	return p.output.Write(b)
}

func (p *program) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// await waits until the program has said something.
func (p *program) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(patience)
	for !strings.Contains(p.said(), text) {
		select {
		case <-p.wrote:
		case <-p.ended:
			require.Contains(t, p.said(), text, "%s has ended", p.command.Path)
		case <-late:
			require.Contains(t, p.said(), text, "%s has not said it", p.command.Path)
		}
	}
}

// output runs a program to its end.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	return string(out)
}
