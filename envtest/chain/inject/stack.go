package inject

import "runtime"

// roomOfRequest is what most requests need, in bytes.
const roomOfRequest = 20 << 10

// growStack has the stack of the goroutine that calls it grow to 32 KiB, if it is smaller. A request goes
// through so many handlers that a new stack, of 2 KiB, would grow four times on the way, and each time
// it is copied frame by frame: together a tenth of what a request costs.
//
//go:noinline
func growStack() {
	var frame [roomOfRequest]byte
	runtime.KeepAlive(&frame)
}
