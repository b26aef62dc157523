package serverlog

import (
	"io"
	"sync"

	"snowglobe.test/internal/redact"
)

// limit bounds what is kept of a log; older lines go first.
const limit = 1 << 20

// Buffer keeps the end of a log and copies it on, without credentials. Make it with NewBuffer.
type Buffer struct {
	mu      sync.Mutex
	content []byte
	dropped bool
	copyTo  io.Writer
}

// NewBuffer makes a buffer without content; copyTo may be nil.
func NewBuffer(copyTo io.Writer) *Buffer { return &Buffer{copyTo: copyTo} }

// Write implements io.Writer.
func (b *Buffer) Write(written []byte) (int, error) {
	line := []byte(redact.Text(string(written)))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.content = append(b.content, line...)
	if excess := len(b.content) - limit; excess > limit {
		// Let the buffer double before it is cut, so that cutting stays rare.
		b.content = append(b.content[:0], b.content[excess:]...)
		b.dropped = true
	}
	if b.copyTo != nil {
		if _, err := b.copyTo.Write(line); err != nil {
			return 0, err
		}
	}
	return len(written), nil
}

// Clear forgets what is kept.
func (b *Buffer) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.content, b.dropped = nil, false
}

// String returns what is kept.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	content := b.content
	if excess := len(content) - limit; excess > 0 {
		content = content[excess:]
	}
	if b.dropped || len(content) < len(b.content) {
		return "... (older lines dropped)\n" + string(content)
	}
	return string(content)
}
