//go:build !snowglobe_light

package controllers

import (
	"os"
	"os/signal"
)

// The scheduler listens for a signal. Go's runtime begins to deliver signals when a package
// asks for the first time, in a goroutine that must not be born in virtual time.
func init() {
	first := make(chan os.Signal, 1)
	signal.Notify(first, os.Interrupt)
	signal.Stop(first)
}
