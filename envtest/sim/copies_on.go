//go:build snowglobesim && linux && (amd64 || arm64) && !cgo

package sim

import _ "unsafe" // for go:linkname

const canCopy = true

// It is in overlay/copies.go.txt.
//
//go:linkname copies
func copies(requests, answers int32) (number uint64, copied bool)
