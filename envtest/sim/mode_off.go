//go:build !snowglobesim

package sim

const enabled = false

func seed(uint64) bool { return false }

func collect() {}

func yield() {}

func alone() bool { return false }

func heldUp() bool { return false }

func progress() (choices, moments, chosen *uint64) { return nil, nil, nil }
