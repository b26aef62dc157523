package scenarios

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/scenarios/engine"
)

const breaks = "# It stops.\nstart\nbreak 'look around'\n! get configmaps a\n-- a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// converse runs a script with a person who types these lines.
func converse(t *testing.T, lines ...string) (Result, string) {
	t.Helper()
	var said strings.Builder
	result := Run(t.Context(), scriptOf(breaks), Options{Prompt: &engine.Prompt{In: strings.NewReader(strings.Join(lines, "\n")), Out: &said}})
	return result, said.String()
}

func TestBreak(t *testing.T) {
	result, said := converse(t,
		"apply a.yaml", "get configmaps 'a'", "list configmaps", "delete configmaps a", "",
		"! get configmaps a", "! list configmaps", "get configmpas a", "gte configmaps", "stdout a", "break", "get 'a", "help step", "continue", "note never")
	assert.NoError(t, result.Err)
	assert.Contains(t, said, "x.txtar:3: break look around\n")
	for _, want := range []string{
		"configmaps/a applied", "name: a", "\n> a\n", "list: succeeded, and was expected to fail",
		`no resource "configmpas"; did you mean configmaps?`, `unknown command "gte"`,
		"stdout has no meaning at a prompt", "break has no meaning at a prompt", "a quoted argument does not end", "step POINT [KEY=VALUE]...",
	} {
		assert.Contains(t, said, want)
	}
	assert.NotContains(t, transcript(result), "never")
	assert.Contains(t, transcript(result), "> apply a.yaml", "what was typed is in the story")
}

func TestBreakEnds(t *testing.T) {
	result, _ := converse(t, "quit")
	assert.ErrorContains(t, result.Err, "x.txtar:3: break: ended at the prompt")
	result, _ = converse(t)
	assert.NoError(t, result.Err, "the end of the input goes on")
	result = Run(t.Context(), scriptOf(breaks), Options{})
	assert.ErrorContains(t, result.Err, "x.txtar:3: break: there is no user to ask")
}

// TestBreakInterrupted ends at the prompt, while the user types nothing.
func TestBreakInterrupted(t *testing.T) {
	for name, realTime := range map[string]bool{"virtual time": false, "real time": true} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			idle, end := io.Pipe()
			defer func() { assert.NoError(t, end.Close()) }()
			asked := writerFunc(func(said []byte) (int, error) {
				if strings.HasSuffix(string(said), "> ") {
					interrupt()
				}
				return len(said), nil
			})
			result := Run(ctx, scriptOf(breaks), Options{RealTime: realTime, Prompt: &engine.Prompt{In: idle, Out: asked}})
			assert.ErrorContains(t, result.Err, "x.txtar:3: break: interrupted")
		})
	}
}

type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(said []byte) (int, error) { return f(said) }
