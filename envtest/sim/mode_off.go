//go:build !snowglobesim

package sim

const enabled = false

func seed(uint64) bool { return false }

func yield() {}

func alone() bool { return false }

func choices() *uint64 { return nil }
