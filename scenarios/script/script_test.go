package script

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRead refuses what no script is, without reading it all.
func TestRead(t *testing.T) {
	_, err := Read("/dev/zero")
	assert.ErrorContains(t, err, "the name of a script ends in .txtar")
	endless := filepath.Join(t.TempDir(), "endless.txtar")
	require.NoError(t, os.Symlink("/dev/zero", endless))
	_, err = Read(endless)
	assert.ErrorContains(t, err, "it is longer than 16 MiB, and no script is")
	_, err = Read(t.TempDir() + "/none.txtar")
	assert.ErrorContains(t, err, "no such file or directory")
}

// TestWordsOfYAML shows that what is no YAML is told from what says the wrong thing by what
// it is, and not by the words of the error, from which only the line may be read.
func TestWordsOfYAML(t *testing.T) {
	var into struct{ A int }
	at, ok := errors.AsType[*LineError](ReadYAML("a: 1\nb: [\n", &into))
	assert.True(t, ok && at.Line > 1, "%v", at)
	err := ReadYAML("yaml: 'line 3: '\n", &into)
	assert.EqualError(t, err, `unknown field "yaml"`)
	_, ok = errors.AsType[*LineError](err)
	assert.False(t, ok, "%v", err)
	assert.EqualError(t, atLine(errors.New("yaml: line 3: a\n  line 4: b")), "line 3: a; line 4: b")
	assert.EqualError(t, atLine(errors.New("in line 3 a colon is missing")), "line 1: in line 3 a colon is missing")
}
