package virtualtime_test

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/envtest/virtualtime"
)

// TestSignalsInBubble asks for a signal in a bubble, as kubectl and controller-runtime's
// signal handler do, and the bubble still ends. It is the first to ask if it runs alone.
func TestSignalsInBubble(t *testing.T) {
	err := virtualtime.Bubble(func() error {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGHUP)
		signal.Stop(c)
		return nil
	})
	assert.NoError(t, err)
}
