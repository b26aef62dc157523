//go:build snowglobesim

package sim

import _ "unsafe" // for go:linkname

const enabled = true

// These are in overlay/runtime.go.txt.

//go:linkname seed
func seed(uint64) bool

//go:linkname choose
func choose(strategy string, depth uint32)

//go:linkname collect
func collect()

//go:linkname yield
func yield()

//go:linkname alone
func alone() bool

//go:linkname heldUp
func heldUp() bool

//go:linkname choices
func choices() *uint64
