// Package gobuild runs go commands that build something. Meanwhile it tells the user what is being
// built and how far that is, and it leaves nothing of a build that is interrupted. It never decides
// what is built, or how.
package gobuild

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"snowglobe.test/internal/group"
	"snowglobe.test/internal/tempdir"
)

// When a build is reported for the first time, and from then on.
const (
	firstReport = 2 * time.Second
	laterReport = 30 * time.Second
)

// Build is Run of a command whose output is of use only as the explanation of an error, of which it
// becomes a part.
func Build(command *exec.Cmd, what string, progress io.Writer) error {
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := Run(command, what, progress); err != nil {
		return fmt.Errorf("%w\n%s", err, &said)
	}
	return nil
}

// Run runs a go command that was made with a context, and whose first argument is "build" or "test".
// Progress is a line when the build takes longer than two seconds, with what is built, in words like
// "the program". When the context of the command ends, nothing is left behind: no compiler or
// linker, and not what they have written.
func Run(command *exec.Cmd, what string, progress io.Writer) error {
	return run(command, what, progress, firstReport)
}

func run(command *exec.Cmd, what string, progress io.Writer, first time.Duration) error {
	folder, err := tempdir.Make("build")
	if err != nil {
		return err
	}
	defer func() { _ = folder.Remove() }() // tempdir cleans up later what is left
	within := func(name string) string { return filepath.Join(folder.Path(), name) }
	b := &build{what: what, graph: within("graph"), trace: within("trace"), begun: time.Now()}
	command.Args = slices.Insert(slices.Clone(command.Args), 2, "-debug-actiongraph="+b.graph, "-debug-trace="+b.trace)
	ended := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { b.report(progress, first, ended) })
	err = group.Run(command)
	close(ended)
	reporting.Wait()
	if command.ProcessState != nil && !command.ProcessState.Exited() { // it was killed
		err = errors.Join(err, b.removeRest())
	}
	return err
}

// build follows how far a go command is, by two debug files that the command writes. Its output
// can't tell: that is the caller's.
type build struct {
	what  string
	graph string // all actions, when they are known
	trace string // events, one in a line
	begun time.Time
	read  int64 // of trace
	done  int
	all   int    // 0 while it is not known
	work  string // the go command's temporary folder
}

// report says how far the build is, until it has ended.
func (b *build) report(w io.Writer, first time.Duration, ended <-chan struct{}) {
	look := time.NewTicker(first)
	defer look.Stop()
	var last time.Duration // when it was last said; 0 for never
	counted := false
	for {
		select {
		case <-ended:
			return
		case <-look.C:
		}
		b.look()
		took := time.Since(b.begun)
		switch {
		case b.all > 0 && b.done >= b.all:
			return
		case last > 0 && took < last+laterReport && (counted || b.all == 0):
			continue
		case b.all == 0:
			fmt.Fprintf(w, "snowglobe: building %s; the first time this takes some minutes (%s)\n",
				b.what, took.Round(time.Second))
		default:
			counted = true
			fmt.Fprintf(w, "snowglobe: building %s: %d of %d packages (%s)\n",
				b.what, b.done, b.all, took.Round(time.Second))
		}
		last = took
	}
}

// Parts of the trace's lines about packages. For each package whose dependencies are built, the go
// command first asks its cache (cacheAction), and only then builds the package. packageAction is in
// the lines of both.
var (
	packageAction = []byte(`"name":"Executing action (build `)
	cacheAction   = []byte(`"name":"Executing action (build check cache `)
)

// isPackageDone reports whether a line of the trace is about a package that is built.
func isPackageDone(line []byte) bool {
	return bytes.Contains(line, packageAction) && !bytes.Contains(line, cacheAction) &&
		bytes.Contains(line, []byte(`"ph":"E"`))
}

// look reads what is new.
func (b *build) look() {
	if b.all == 0 {
		b.readGraph()
	}
	file, err := os.Open(b.trace)
	if err != nil {
		return // there is none yet
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(file, b.read, 1<<40))
	if err != nil {
		return
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	b.read += int64(len(text))
	for line := range bytes.Lines(text) {
		if isPackageDone(line) {
			b.done++
		}
	}
}

// readGraph counts the packages.
func (b *build) readGraph() {
	text, err := os.ReadFile(b.graph)
	if err != nil {
		return
	}
	var actions []struct{ Mode, Objdir string }
	if json.Unmarshal(text, &actions) != nil {
		return // it is being written
	}
	for _, action := range actions {
		if action.Mode == "build" {
			b.all++
		}
		if b.work == "" && action.Objdir != "" {
			b.work = filepath.Dir(filepath.Clean(action.Objdir))
		}
	}
}

// removeRest removes the folder of a go command that was killed.
func (b *build) removeRest() error {
	if b.work == "" {
		b.readGraph()
	}
	if !strings.HasPrefix(filepath.Base(b.work), "go-build") {
		return nil
	}
	return os.RemoveAll(b.work)
}
