package serverlog

import (
	"strings"
	"testing"
)

func TestProblems(t *testing.T) {
	const log = "... (older lines dropped)\n" +
		"I0101 00:00:00.000000   1 a.go:1] begins\n" +
		"E0101 00:00:00.000000   1 a.go:2] panics\ngoroutine 1 [running]:\n" +
		"I0101 00:00:00.000000   1 a.go:3] goes on\n" +
		"W0101 00:00:00.000000   1 a.go:4] wavers\n"
	want := "E0101 00:00:00.000000   1 a.go:2] panics\ngoroutine 1 [running]:\nW0101 00:00:00.000000   1 a.go:4] wavers\n(3 lines "
	if got := Problems(log); !strings.HasPrefix(got, want) {
		t.Errorf("the problems are\n%s", got)
	}
	if got := Problems("E0101 x\n"); got != "E0101 x\n" {
		t.Errorf("nothing is left out, and it says %q", got)
	}
}
