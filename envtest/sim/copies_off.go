//go:build !snowglobesim || !linux || !(amd64 || arm64) || cgo

package sim

const canCopy = false

func copies(int32, int32) (number uint64, copied bool) { return 0, false }

type written struct{}

func newWritten() written { return written{} }

func (written) take() {}

func (written) tell() {}
