package virtualtime

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// startSignals starts the goroutine in which Go hands out signals, and which lives for as
// long as the process. Whoever asks for signals first starts it, and in a bubble it would
// keep the bubble from ending.
var startSignals = sync.OnceFunc(func() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	signal.Stop(c)
})
