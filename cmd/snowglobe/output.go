package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
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
