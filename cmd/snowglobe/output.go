package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/term"

	"snowglobe.test/envtest/trace"
)

// output is standard output, and remembers when it could not be written: a result that
// no reader has seen is no success, and hardly any code that prints asks.
type output struct {
	to io.Writer

	mu  sync.Mutex // guards err
	err error      // the first
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	n, err := o.to.Write(text)
	if err == nil {
		return n, nil
	}
	// The text of a PathError names a file that the user has not named.
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = fmt.Errorf("standard output: %w", err)
	}
	return n, o.err
}

// also adds what could not be written to a command's error, unless that says it already.
func (o *output) also(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil || errors.Is(err, o.err) {
		return err
	}
	return errors.Join(err, failed(o.err))
}

// beneath is what an output writes to: children write there too, and it may be a terminal.
func beneath(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.to
	}
	return w
}

// fileOf is the file that w writes to, nil if that is none.
func fileOf(w io.Writer) *os.File {
	file, _ := beneath(w).(*os.File)
	return file
}

func isTerminal(w io.Writer) bool {
	file := fileOf(w)
	return file != nil && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

// columns is the width of w if that is a terminal, or else 0.
func columns(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(fileOf(w).Fd()))
	if err != nil {
		return 0
	}
	return width
}

// wantsColor reports whether to write colours to w; see https://no-color.org.
func wantsColor(w io.Writer) bool { return isTerminal(w) && os.Getenv("NO_COLOR") == "" }

// ANSI codes.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// progress shows on one line of a terminal how far a start is; elsewhere, nothing.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	shown bool
}

func newProgress(w io.Writer) *progress {
	if !isTerminal(w) {
		w = io.Discard
	}
	return &progress{w: w}
}

const clearLine = "\r\x1b[K"

func (p *progress) observe(rec trace.Record) {
	switch e := rec.Event.(type) {
	case trace.Stage:
		p.line("starting: stage " + e.Name)
	case trace.Hook:
		p.line("starting: post-start hook " + e.Name)
	}
}

// line replaces what is shown by a text.
func (p *progress) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	fmt.Fprintf(p.w, "%ssnowglobe: %s", clearLine, text)
}

// end clears the line and shows nothing more.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, clearLine)
	}
	p.w = io.Discard
}
