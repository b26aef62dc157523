package engine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	rsc "rsc.io/script"

	"snowglobe.test/scenarios/script"
)

// shell is rsc.io/script as scripts use it: it expands variables, keeps what the last
// command printed, runs programs, and has the commands about files. It is given a line at
// a time, so that whoever gives it knows the line, and what came of a command on it.
type shell struct {
	file   string // what errors call the script
	state  *rsc.State
	engine *rsc.Engine
}

// localExecName is the command exec of rsc.io/script, which runs a program of this machine:
// exec is a command in a pod.
const localExecName = "local-exec"

// killDelay is how long a program may take to end after it is told to.
const killDelay = 100 * time.Millisecond

func newShell(r *Run, folder string) (*shell, error) {
	temp := filepath.Join(folder, ".tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		return nil, err
	}
	state, err := rsc.NewState(r.Background(), folder, []string{
		"WORK=" + folder, "PATH=" + os.Getenv("PATH"), "HOME=/no-home", "TMPDIR=" + temp,
		"GOTRACEBACK=system", "devnull=" + os.DevNull, "exe=" + exeSuffix(), "$=$",
	})
	if err != nil {
		return nil, err
	}
	commands := map[string]rsc.Cmd{}
	upstreams := rsc.DefaultCmds()
	upstreams[localExecName] = rsc.Exec(func(cmd *exec.Cmd) error { return cmd.Process.Signal(os.Interrupt) }, killDelay)
	for _, b := range builtins() {
		if commands[b.Name] = upstreams[b.Name]; b.run != nil {
			commands[b.Name] = builtinCommand(r, b)
		}
	}
	for _, c := range r.commands {
		commands[c.Name] = shellCommand(r, c)
	}
	s := &shell{r.Script.File, state, &rsc.Engine{Cmds: commands}}
	return s, s.write(r.Script)
}

// write writes the files of a script into the folder of the run.
func (s *shell) write(of script.Script) error {
	for _, file := range of.Files() {
		path := s.state.Path(s.state.ExpandEnv(file.Name, false))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.Text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// errAsExpected is what the shell is told of a command after "!". The engine knows better.
var errAsExpected = errors.New("it has been judged already")

// asExpected satisfies the shell, whatever came of a command.
func asExpected(r *Run) error {
	if r.line.Negated {
		return errAsExpected
	}
	return nil
}

// shellCommand is a command as a command of the shell.
func shellCommand(r *Run, c Command) rsc.Cmd {
	return rsc.Command(rsc.CmdUsage{}, func(_ *rsc.State, args ...string) (rsc.WaitFunc, error) {
		r.outcome = r.play(c, args)
		return func(*rsc.State) (stdout, stderr string, err error) {
			return r.Stdout.String(), r.Stderr.String(), asExpected(r)
		}, nil
	})
}

// builtinCommand is a command of the engine's own, which leaves what was printed as it is.
func builtinCommand(r *Run, b builtin) rsc.Cmd {
	return rsc.Command(rsc.CmdUsage{}, func(_ *rsc.State, args ...string) (rsc.WaitFunc, error) {
		r.outcome = b.run(r, r.line.Negated, args)
		return nil, asExpected(r)
	})
}

// run runs a line, without its conditions, which hold.
func (s *shell) run(line string, log io.Writer) error {
	line = strings.TrimSpace(line)
	for strings.HasPrefix(line, "[") {
		condition := strings.Fields(line)[0]
		line = strings.TrimSpace(strings.TrimPrefix(line, condition))
	}
	err := s.engine.Execute(s.state, s.file, bufio.NewReader(strings.NewReader(line)), log)
	var failed *rsc.CommandError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rsc.ErrUnexpectedSuccess):
		return errSucceeded
	case !errors.As(err, &failed):
		return errors.Unwrap(err) // it has the place, which for the shell is line 1
	case errors.Is(err, rsc.ErrUsage):
		return &UsageError{ErrUsage, fmt.Sprintf("%s %s", failed.Op, s.engine.Cmds[failed.Op].Usage().Args)}
	}
	return failed.Err
}

// close ends the programs that still run, however that ends.
func (s *shell) close(log io.Writer) { _ = s.state.CloseAndWait(log) }
