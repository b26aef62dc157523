package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/wall"
	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/explore"
	"snowglobe.test/scenarios/script"
)

// The files of the folder of an original: the task that it runs until "reseed", if there is one, and the
// task and the answer of each copy.
const firstTask = "first.task"

func taskFile(folder string, number uint64) string {
	return filepath.Join(folder, fmt.Sprintf("%d.task", number))
}

func answerFile(folder string, number uint64) string {
	return filepath.Join(folder, fmt.Sprintf("%d.answer", number))
}

// serveCopies makes this process an original. Each copy ends here.
func serveCopies(ctx context.Context, folder string, opts scenarios.Options) error {
	var served copyOf
	first, err := readTask(filepath.Join(folder, firstTask))
	switch {
	case os.IsNotExist(err):
		if !served.copy(folder) {
			return served.err
		}
		return served.end(scenarios.Run(ctx, scriptOf(served.task), opts))
	case err != nil:
		return err
	}
	opts.Branch = func() (script.Script, bool) {
		copied := served.copy(folder)
		return scriptOf(served.task), copied
	}
	result := scenarios.Run(ctx, scriptOf(first), opts)
	if served.number == 0 {
		return served.err // of the original, or else the script ended before it came to "reseed"
	}
	return served.end(result)
}

// copyOf is a copy of this process that runs a task. In the original its number is 0.
type copyOf struct {
	folder string
	number uint64
	task   explore.Task
	took   time.Duration
	ran    func() // adds to took
	err    error
}

// copy makes copies, and returns true in each.
func (c *copyOf) copy(folder string) bool {
	number, copied := sim.Copies()
	if !copied {
		return false
	}
	c.folder, c.number, c.ran = folder, number, wall.Timing(&c.took)
	c.task, c.err = readTask(taskFile(folder, number))
	return true
}

// end writes the answer and ends the process.
func (c *copyOf) end(result scenarios.Result) error {
	if c.err != nil {
		return c.err
	}
	c.ran()
	result.Wall = c.took
	answer, err := os.Create(answerFile(c.folder, c.number))
	if err != nil {
		return err
	}
	if err := tell(answer, c.task, result); err != nil {
		return err
	}
	if err := answer.Close(); err != nil {
		return err
	}
	sim.Exit()
	return nil
}

func writeTask(file string, task explore.Task) error {
	text, err := json.Marshal(task)
	if err != nil {
		return fmt.Errorf("task: %w", err)
	}
	return os.WriteFile(file, text, 0o600)
}

func readTask(file string) (task explore.Task, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return task, err
	}
	return task, json.Unmarshal(text, &task)
}
