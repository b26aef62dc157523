package serverlog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProblems(t *testing.T) {
	const log = "... (older lines dropped)\n" +
		"I0101 00:00:00.000000   1 a.go:1] begins\n" +
		"E0101 00:00:00.000000   1 a.go:2] panics\ngoroutine 1 [running]:\n" +
		"I0101 00:00:00.000000   1 a.go:3] goes on\n" +
		"W0101 00:00:00.000000   1 a.go:4] wavers\n" +
		"W0101 00:00:00.000000   1 a.go:5] Skipping API batch/v1beta1 because it has no resources.\n"
	want := "E0101 00:00:00.000000   1 a.go:2] panics\ngoroutine 1 [running]:\nW0101 00:00:00.000000   1 a.go:4] wavers\n(4 lines "
	got := Problems(log)
	assert.True(t, strings.HasPrefix(got, want), "the problems are\n%s", got)
	assert.Equal(t, "E0101 x\n", Problems("E0101 x\n"), "nothing is left out")
}
