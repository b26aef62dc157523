package home

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(Tests{m}.Run()) }

// failVariable makes TestWrites fail.
const failVariable = "SNOWGLOBE_TEST_HOME_FAILS"

// TestWrites leaves a file in the user's cache, and says where.
func TestWrites(t *testing.T) {
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(cache, 0o700))
	file := filepath.Join(cache, "left")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Log("left:" + file)
	assert.Empty(t, os.Getenv(failVariable))
}

// TestNothingIsLeft runs the tests again as go test does: they can fail, and what they leave
// is not in the user's home.
func TestNothingIsLeft(t *testing.T) {
	for _, fails := range []string{"", "yes"} {
		program, err := os.Executable()
		require.NoError(t, err)
		again := exec.CommandContext(t.Context(), program, "-test.run=^TestWrites$", "-test.v")
		again.Env = append(os.Environ(), variable+"=", failVariable+"="+fails)
		out, err := again.CombinedOutput()
		var exit *exec.ExitError
		assert.Equal(t, fails != "", errors.As(err, &exit) && exit.ExitCode() == 1, "%v\n%s", err, out)
		_, rest, _ := strings.Cut(string(out), "left:")
		file, _, _ := strings.Cut(rest, "\n")
		require.True(t, filepath.IsAbs(file), "in %s", out)
		assert.NoFileExists(t, file)
	}
}
