package workshop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance/mutants/trial"
)

// TestMain is also the program that the tests run.
func TestMain(m *testing.M) {
	if mutants, ok := os.LookupEnv("SNOWGLOBE_MUTANTS"); ok {
		os.Exit(program(mutants))
	}
	os.Exit(m.Run())
}

// program passes all cases, unless a mutant is on.
func program(mutants string) int {
	var order trial.Order
	if err := json.NewDecoder(os.Stdin).Decode(&order); err != nil {
		return 2
	}
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(trial.Line{Message: os.TempDir()})
	for _, id := range order.Cases {
		switch mutants {
		case "1":
			fmt.Fprintln(os.Stderr, "panic: a mutant")
			return 2
		case "2 3":
			select {}
		}
		_ = out.Encode(trial.Line{Case: id, State: trial.Passed})
	}
	return 0
}

func TestProcess(t *testing.T) {
	built := Built{Program: os.Args[0]}
	order := trial.Order{Cases: []string{"a", "b"}}
	var said []trial.Line
	all := func(line trial.Line) bool { said = append(said, line); return true }

	require.NoError(t, built.Process(t.Context(), nil, order, all))
	require.Len(t, said, 3)
	assert.Equal(t, trial.Line{Case: "b", State: trial.Passed}, said[2])
	assert.NoFileExists(t, said[0].Message, "its temporary folder is gone")

	err := built.Process(t.Context(), []int{1}, order, all)
	assert.ErrorContains(t, err, "panic: a mutant")

	n := 0
	require.NoError(t, built.Process(t.Context(), nil, order, func(trial.Line) bool { n++; return n < 2 }))
	assert.Equal(t, 2, n, "nothing is told after it was enough")
}

// TestProcessEnds ends a process that would go on for ever when its context does.
func TestProcessEnds(t *testing.T) {
	hung := errors.New("hung")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	err := Built{Program: os.Args[0]}.Process(ctx, []int{2, 3}, trial.Order{Cases: []string{"a"}}, func(trial.Line) bool {
		cancel(hung)
		return true
	})
	assert.ErrorIs(t, err, hung)
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(text)
	}
	a, b, c := filepath.Join("x", "a.go"), filepath.Join("x", "y", "b.go"), filepath.Join("x", "c.go")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "judge"), nil, 0o600))
	require.NoError(t, tree{a: []byte("1"), b: []byte("2")}.replace(dir))
	require.NoError(t, tree{a: []byte("1"), c: []byte("3")}.replace(dir))
	assert.Equal(t, "1", read(a))
	assert.Equal(t, "3", read(c))
	assert.NoFileExists(t, filepath.Join(dir, b))
	assert.FileExists(t, filepath.Join(dir, "judge"), "other files stay")
}

// TestLast refuses a program that is not the listed one.
func TestLast(t *testing.T) {
	w := &Workshop{dir: t.TempDir()}
	_, err := w.Last()
	assert.ErrorContains(t, err, "build it first")
	require.NoError(t, os.WriteFile(w.program(), []byte("new"), 0o700))
	built := Built{Program: w.program()}
	list := func() {
		text, err := json.Marshal(built)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(w.list(), text, 0o600))
	}
	list()
	_, err = w.Last()
	assert.ErrorContains(t, err, "build it again")
	built.Sum, err = sum(w.program())
	require.NoError(t, err)
	list()
	got, err := w.Last()
	require.NoError(t, err)
	assert.Equal(t, built, got)
}
