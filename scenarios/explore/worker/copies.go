package worker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/tempdir"
	"snowglobe.test/scenarios/explore"
)

// Copies runs each task in a copy of a process that has gone a part of the way already: it has started,
// and, for the scripts that have "reseed", it has run the commands before that. A copy does what a process
// of its own does. Make it with NewCopies, for a program in sim mode.
type Copies struct {
	process Process
	folder  *tempdir.Dir
	life    context.Context // of the originals
	end     context.CancelFunc
	cpus    []int // that they may run on

	mu      sync.Mutex
	idle    []*original // the last one that was used is the last
	running map[int]int // how many tasks run on each processor
	tasks   uint64
	asked   map[string]int  // how many tasks began with these commands
	useless map[string]bool // an original could not be made of these
}

// maxIdle is how many originals are kept. Each has the memory of a control plane.
const maxIdle = 6

// original is a process that makes copies, of those that have run the beginning of a script.
type original struct {
	*sim.Original
	cpu       int
	beginning string
	folder    string
	stderr    *os.File
}

// NewCopies returns what runs tasks in copies of processes of a program. Close ends them.
func NewCopies(process Process) (*Copies, error) {
	folder, err := tempdir.Make("copies")
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	return &Copies{
		process: process, folder: folder, life: life, end: end, cpus: sim.CPUs(),
		running: map[int]int{}, asked: map[string]int{}, useless: map[string]bool{},
	}, nil
}

// Close ends the processes.
func (c *Copies) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, o := range c.idle {
		errs = append(errs, o.close())
	}
	c.idle = nil
	c.end()
	return errors.Join(append(errs, c.folder.Remove())...)
}

// Run implements explore.Runner.
func (c *Copies) Run(ctx context.Context, task explore.Task) (explore.Outcome, error) {
	cpu := c.reserve()
	defer c.release(cpu)
	return c.run(ctx, task, cpu)
}

// reserve returns the processor with the fewest tasks, for one more.
func (c *Copies) reserve() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	cpu := slices.MinFunc(c.cpus, func(a, b int) int { return cmp.Compare(c.running[a], c.running[b]) })
	c.running[cpu]++
	return cpu
}

func (c *Copies) release(cpu int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[cpu]--
}

func (c *Copies) run(ctx context.Context, task explore.Task, cpu int) (explore.Outcome, error) {
	began := time.Now()
	o, number, err := c.take(task, cpu)
	if err != nil {
		return explore.Outcome{}, err
	}
	limited, cancel := c.process.limited(ctx)
	defer cancel()
	if err := errors.Join(writeTask(taskFile(o.folder, number), task), o.stderr.Truncate(0)); err != nil {
		return explore.Outcome{}, errors.Join(err, o.close())
	}
	err = o.Copy(limited, number)
	end, ended := errors.AsType[*sim.EndError](err)
	if err != nil && !ended {
		// What it has said is why; a task that begins like this one is run from its start.
		said := o.said()
		err = errors.Join(err, o.close())
		if o.beginning == "" {
			return explore.Outcome{}, fmt.Errorf("%w: %s", err, said)
		}
		c.mu.Lock()
		c.useless[o.beginning] = true
		c.mu.Unlock()
		return c.run(ctx, task, cpu)
	}
	said := o.said()
	answered, readErr := os.ReadFile(answerFile(o.folder, number))
	_, _ = os.Remove(taskFile(o.folder, number)), os.Remove(answerFile(o.folder, number))
	c.giveBack(o)
	if end != nil {
		return c.process.ended(ctx, limited, time.Since(began), end.Error(), said)
	}
	if readErr != nil {
		return explore.Outcome{}, readErr
	}
	return outcome(answered, time.Since(began))
}

// take returns an original for a task on a processor, and a number for the copy.
func (c *Copies) take(task explore.Task, cpu int) (*original, uint64, error) {
	beginning := explore.Beginning(scriptOf(task))
	c.mu.Lock()
	c.tasks++
	number := c.tasks
	if c.asked[beginning]++; c.asked[beginning] == 1 || c.useless[beginning] {
		beginning = "" // it is not worth it, or in vain
	}
	for i, o := range slices.Backward(c.idle) {
		if o.cpu == cpu && o.beginning == beginning {
			c.idle = slices.Delete(c.idle, i, i+1)
			c.mu.Unlock()
			return o, number, nil
		}
	}
	c.mu.Unlock()
	o, err := c.start(beginning, cpu, task, number)
	return o, number, err
}

// start starts an original.
func (c *Copies) start(beginning string, cpu int, task explore.Task, number uint64) (*original, error) {
	o := &original{cpu: cpu, beginning: beginning, folder: filepath.Join(c.folder.Path(), fmt.Sprint(number))}
	if err := os.Mkdir(o.folder, 0o700); err != nil {
		return nil, err
	}
	if beginning != "" {
		if err := writeTask(filepath.Join(o.folder, firstTask), task); err != nil {
			return nil, err
		}
	}
	stderr, err := os.OpenFile(filepath.Join(o.folder, "stderr"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	o.stderr = stderr
	o.Original, err = sim.NewOriginal(c.life, cpu, func(ctx context.Context) *exec.Cmd {
		process := exec.CommandContext(ctx, c.process.Program, c.process.Args...)
		process.Env = append(os.Environ(), variable+"="+o.folder, "TMPDIR="+o.folder)
		process.Stderr = stderr
		return process
	})
	if err != nil {
		return nil, errors.Join(err, stderr.Close())
	}
	return o, nil
}

// giveBack keeps an original for other tasks.
func (c *Copies) giveBack(o *original) {
	c.mu.Lock()
	c.idle = append(c.idle, o)
	var oldest *original
	if len(c.idle) > maxIdle {
		oldest, c.idle = c.idle[0], c.idle[1:]
	}
	c.mu.Unlock()
	if oldest != nil {
		_ = oldest.close() // whatever it says, nothing depends on it any more
	}
}

// said is what the last copy has written on its standard error.
func (o *original) said() string {
	text, err := os.ReadFile(o.stderr.Name())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text))
}

func (o *original) close() error {
	return errors.Join(o.Close(), o.stderr.Close(), os.RemoveAll(o.folder))
}
