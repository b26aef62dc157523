//go:build snowglobesim

package sim

import _ "unsafe" // for go:linkname

const enabled = true

// These are in overlay/runtime.go.txt.

//go:linkname seed
func seed(uint64) bool

//go:linkname collect
func collect()

//go:linkname yield
func yield()

//go:linkname alone
func alone() bool

//go:linkname heldUp
func heldUp() bool

//go:linkname progress
func progress() (choices, moments, chosen *uint64)
