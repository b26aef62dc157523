package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"

	"snowglobe.test/internal/group"
)

// The descriptors of an original: they are the first ones of exec.Cmd.ExtraFiles.
const (
	requestsFile = 3
	answersFile  = 4
)

// Copies makes copies of this process as long as its Original wants more, and returns in each of them with
// the number that was asked for: what came before, such as the start of an API server, each copy has done.
// In the process itself it returns at the end, and false. Where there are no copies (see CanCopy) it
// returns at once, and false.
//
// Nothing runs in the process meanwhile. A copy has no goroutine that was in a system call, and no
// longer hears of sockets and signals that the process waited for. A copy that ends with Exit makes those
// that follow faster.
func Copies() (number uint64, copied bool) {
	if !canCopy {
		return 0, false
	}
	ofCopies = newWritten()
	if number, copied = copies(requestsFile, answersFile); copied {
		ofCopies.take()
	}
	return number, copied
}

// ofCopies is what the copies of this process have written.
var ofCopies written

// Exit ends a copy, as os.Exit(0) does.
func Exit() {
	ofCopies.tell()
	os.Exit(0)
}

// ProgramCopies reports whether what Program builds can copy its process.
const ProgramCopies = runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")

// CanCopy reports whether this program can copy its process: in sim mode on Linux, without cgo.
func CanCopy() bool { return canCopy }

// Original is a process that calls Copies.
type Original struct {
	requests, answers *os.File
	end               context.CancelFunc
	ended             chan struct{}
	err               error // how the process has ended; read it after ended is closed
}

// NewOriginal starts a command that will call Copies, and runs it and its copies on one processor, one of
// CPUs: each page of memory that a copy is the first to write is taken from all processors that it has run
// on, which can double the time of a run on two. It ends when ctx does, or by Close.
func NewOriginal(ctx context.Context, cpu int, command func(context.Context) *exec.Cmd) (*Original, error) {
	toProcess, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answers, fromProcess, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, toProcess.Close(), requests.Close())
	}
	ctx, end := context.WithCancel(ctx)
	o := &Original{requests: requests, answers: answers, end: end, ended: make(chan struct{})}
	original := command(ctx)
	original.ExtraFiles = []*os.File{toProcess, fromProcess}
	go func() {
		defer close(o.ended)
		pin(cpu)
		o.err = group.Run(original)
		_, _ = toProcess.Close(), fromProcess.Close() // so that answers ends with the process
	}()
	return o, nil
}

// EndError is the error about a copy that did not end well.
type EndError struct {
	Code   int            // with which it exited; 0 if by a signal
	Signal syscall.Signal // by which it ended; 0 if by itself
}

func (e *EndError) Error() string {
	if e.Signal != 0 {
		return "signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Copy has the process make a copy, with this number, and returns when that has ended. When ctx ends, the
// copy is killed. The error is an *EndError if the copy did not end well, and another one if the
// process made none. It may be called by one goroutine at a time.
func (o *Original) Copy(ctx context.Context, number uint64) error {
	var request [8]byte
	binary.NativeEndian.PutUint64(request[:], number)
	if _, err := o.requests.Write(request[:]); err != nil {
		return o.gone(err)
	}
	pid, err := o.answer()
	switch {
	case err != nil:
		return o.gone(err)
	case pid < 0:
		return errors.New("the process can't be copied: there may be too many, or too little memory")
	}
	var over atomic.Bool
	defer over.Store(true)
	defer context.AfterFunc(ctx, func() {
		if process, err := os.FindProcess(int(pid)); err == nil && !over.Load() {
			_ = process.Kill() // it may have ended meanwhile
		}
	})()
	status, err := o.answer()
	switch {
	case err != nil:
		return o.gone(err)
	case status != 0:
		return &EndError{Code: int(status >> 8 & 0xff), Signal: syscall.Signal(status & 0x7f)}
	}
	return nil
}

// answer reads a word that the process has written.
func (o *Original) answer() (int64, error) {
	var word [8]byte
	_, err := io.ReadFull(o.answers, word[:])
	return int64(binary.NativeEndian.Uint64(word[:])), err
}

// gone is the error about a process that has ended too early.
func (o *Original) gone(err error) error {
	_ = o.requests.Close() // the process does not read from it any more
	o.end()
	<-o.ended
	return fmt.Errorf("the process that makes copies has ended: %w", errors.Join(o.err, err))
}

// Close lets the process go on without copies, waits for its end, and returns how it ended.
func (o *Original) Close() error {
	defer o.end()
	_ = o.requests.Close() // twice after gone
	<-o.ended
	return errors.Join(o.err, o.answers.Close())
}
