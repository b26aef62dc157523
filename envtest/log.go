package envtest

import (
	"io"
	"sync"
)

// logLimit bounds what is kept of a log; older lines go first.
const logLimit = 1 << 20

// logBuffer keeps the end of the API server's log and copies it on.
type logBuffer struct {
	mu      sync.Mutex
	content []byte
	dropped bool
	copyTo  io.Writer
}

func newLogBuffer(copyTo io.Writer) *logBuffer { return &logBuffer{copyTo: copyTo} }

// Write implements io.Writer.
func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.content = append(b.content, line...)
	if excess := len(b.content) - logLimit; excess > logLimit {
		// Let the buffer double before it is cut, so that cutting stays rare.
		b.content = append(b.content[:0], b.content[excess:]...)
		b.dropped = true
	}
	if b.copyTo != nil {
		return b.copyTo.Write(line)
	}
	return len(line), nil
}

// String returns what is kept.
func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	content := b.content
	if excess := len(content) - logLimit; excess > 0 {
		content = content[excess:]
	}
	if b.dropped || len(content) < len(b.content) {
		return "... (older lines dropped)\n" + string(content)
	}
	return string(content)
}
