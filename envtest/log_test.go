package envtest_test

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"snowglobe.test/envtest"
	"snowglobe.test/internal/serverlog"
)

// TestLog keeps the logs of two servers apart from each other and from that of
// the test itself.
func TestLog(t *testing.T) {
	var copied bytes.Buffer
	first := envtest.Start(t, envtest.WithLog(&copied))
	second := envtest.Start(t)
	klog.Info("a line of the test's own")
	for _, cp := range []*envtest.ControlPlane{first, second} {
		require.NoError(t, cp.Stop(t.Context()))
		const once = "validating admission controller(s) successfully"
		assert.Equal(t, 1, strings.Count(cp.Log(), once), "lines like %q in the log of %s: want its own one", once, cp.Name())
		assert.NotContains(t, cp.Log(), "the test's own", "the log of %s has a line of the test", cp.Name())
	}
	const routine = "because it has no resources"
	assert.Contains(t, first.Log(), routine)
	assert.NotContains(t, serverlog.Problems(first.Log()), routine, "what a failed test shows")
	assert.Equal(t, first.Log(), copied.String(), "the copy of the log is not the log")
}

// TestLogOfFailedTest shows what the server has said until the test ended, and nothing of its stop, which
// has dozens of lines.
func TestLogOfFailedTest(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t, context: t.Context()}
	cp := envtest.Start(r)
	r.Error("failed")
	r.end()
	require.Len(t, r.logs, 1)
	assert.Contains(t, r.logs[0], "log of the API server:")
	assert.Less(t, leftOut(t, r.logs[0]), leftOut(t, serverlog.Problems(cp.Log()))-20)
}

// leftOut is how many lines of a log were not shown.
func leftOut(t *testing.T, shown string) int {
	number := regexp.MustCompile(`\((\d+) lines`).FindStringSubmatch(shown)
	require.Len(t, number, 2, shown)
	left, err := strconv.Atoi(number[1])
	require.NoError(t, err)
	return left
}
