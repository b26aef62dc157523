package pages

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTroubleshooting(t *testing.T) {
	const page = "**`the disk of ... is full`, or `no space\nleft on device`** — Free some.\n\n**A heading in words** — `not a quoted message`\n\n**`...`** — Everything.\n"
	for message, found := range map[string]bool{
		"start: the disk of \"data\" is full; free some": true,
		"write: no space left on device":                 true,
		"is full: the disk of a stranger":                false,
		"not a quoted message":                           false,
		"something else":                                 false,
	} {
		err := troubleshooting(page, message)
		assert.Equal(t, found, err == nil, "%q: %v", message, err)
	}
	Troubleshooting(t, "../..", "virtual time stands still: goroutine 7 is in sync.Mutex.Lock at main.go:7")
}
