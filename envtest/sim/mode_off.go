//go:build !snowglobesim

package sim

const enabled = false

func seed(uint64) bool { return false }

func choose(string, uint32) {}

func collect() {}

func yield() {}

func alone() bool { return false }

func heldUp() bool { return false }

func choices() *uint64 { return nil }
