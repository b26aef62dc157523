package engine

import (
	"bytes"
	"fmt"
	"strings"
)

// transcript has the commands of a script and what they printed, below its comments.
type transcript struct {
	text bytes.Buffer
	mark int // where the current phase begins
}

// Write implements io.Writer.
func (t *transcript) Write(p []byte) (int, error) { return t.text.Write(p) }

// phase begins a phase. The previous phase has succeeded, so unless keep is set, only its
// comment stays.
func (t *transcript) phase(comment []string, keep bool) {
	if !keep {
		t.text.Truncate(t.mark)
	}
	fmt.Fprintln(&t.text, strings.Join(comment, "\n"))
	t.mark = t.text.Len()
}

// end returns the transcript. Unless keep is set, only the comment of the last phase stays.
func (t *transcript) end(keep bool) string {
	if !keep {
		t.text.Truncate(t.mark)
	}
	return t.text.String()
}
