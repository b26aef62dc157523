package main

import (
	"fmt"
	"io"
	"sync"

	"snowglobe.test/envtest/trace"
)

// progress shows on one line of a terminal how far a start has come. Elsewhere it shows
// nothing.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	shown bool
}

// newProgress returns nil, which shows nothing, if w is not a terminal.
func newProgress(w io.Writer) *progress {
	if !isTerminal(w) {
		return nil
	}
	return &progress{w: w}
}

const clearLine = "\r\x1b[K"

// observe receives the trace of a control plane.
func (p *progress) observe(rec trace.Record) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil {
		return
	}
	switch e := rec.Event.(type) {
	case trace.Stage:
		p.show("stage " + e.Name)
	case trace.Hook:
		p.show("post-start hook " + e.Name)
	}
}

func (p *progress) show(what string) {
	p.shown = true
	fmt.Fprintf(p.w, "%ssnowglobe: starting: %s", clearLine, what)
}

// end clears the line.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, clearLine)
	}
	p.w = nil
}
