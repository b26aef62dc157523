// Package ends has tests whose bubbles end in different ways.
package ends

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLeaves(*testing.T) {
	go func() { <-make(chan int) }()
}

func TestSleeper(*testing.T) {
	go time.Sleep(time.Hour)
}

func TestBlocks(*testing.T) {
	var mu sync.Mutex
	mu.Lock()
	mu.Lock()
}

func TestFails(t *testing.T) {
	go func() { <-make(chan int) }()
	assert.Fail(t, "an assertion")
}

func TestAfter(t *testing.T) {
	t.Run("one", func(t *testing.T) { time.Sleep(time.Hour) })
}
