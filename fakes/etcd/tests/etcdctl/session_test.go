package etcdctl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// step is a command of a session: a line that begins with "$ ", then lines that
// begin with "< " for it to read, then what it prints.
//
// A number before a command means that it is interrupted once it has printed so
// many lines. NAME= before it keeps the second word that it prints as $NAME.
// What differs from run to run is shown as a name in capitals; "[exit N]" shows an
// exit code other than zero.
type step struct {
	line  string
	stdin []string
	want  []string
}

// parse reads a session.
func parse(t *testing.T, file string) []step {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var steps []step
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		input, isInput := strings.CutPrefix(line, "<")
		switch {
		case isCommand:
			steps = append(steps, step{line: command})
		case len(steps) == 0:
			require.Failf(t, "not a session", "%s begins with %q; want a line that begins with $", file, line)
		case isInput:
			last := &steps[len(steps)-1]
			last.stdin = append(last.stdin, strings.TrimPrefix(input, " "))
		default:
			last := &steps[len(steps)-1]
			last.want = append(last.want, line)
		}
	}
	return steps
}

// session runs steps against one etcd.
type session struct {
	endpoint string
	dir      string
	names    map[string]string // of what was kept
}

var (
	words    = regexp.MustCompile(`'[^']*'|\S+`)
	prefixes = regexp.MustCompile(`^(?:([0-9]+) |([A-Z]+)=)?etcdctl (.*)$`)
)

// run does a step and returns what it prints.
func (s *session) run(t *testing.T, st step) []string {
	t.Helper()
	parts := prefixes.FindStringSubmatch(st.line)
	require.NotNil(t, parts, "not a command of a session: %s", st.line)
	var args []string
	for _, word := range words.FindAllString(parts[3], -1) {
		args = append(args, os.Expand(strings.Trim(word, "'"), func(name string) string { return s.names[name] }))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	// The race detector would have each process wait a second before it ends.
	cmd.Env = append(os.Environ(), runEtcdctl+"=1", "ETCDCTL_ENDPOINTS="+s.endpoint, "GORACE=atexit_sleep_ms=0")
	cmd.Dir = s.dir
	cmd.Stdin = strings.NewReader(strings.Join(append(slices.Clone(st.stdin), ""), "\n"))
	if parts[1] != "" {
		n, err := strconv.Atoi(parts[1])
		require.NoError(t, err)
		return s.tidy(readLines(t, cmd, n))
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	if fields := strings.Fields(string(out)); parts[2] != "" && len(fields) > 1 {
		s.names[parts[2]] = fields[1]
	}
	lines := s.tidy(string(out))
	if exit != nil {
		lines = append(lines, fmt.Sprintf("[exit %d]", exit.ExitCode()))
	}
	return lines
}

// readLines reads so many lines of what cmd prints and then interrupts it.
func readLines(t *testing.T, cmd *exec.Cmd, n int) string {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var text strings.Builder
	lines := bufio.NewReader(stdout)
	for range n {
		line, err := lines.ReadString('\n')
		text.WriteString(line)
		if err != nil {
			text.WriteString(err.Error() + "\n")
			break
		}
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_, _ = io.Copy(io.Discard, stdout)
	_ = cmd.Wait() // its error only says that the command was interrupted
	return text.String()
}

// differing lists what differs from run to run, with its replacement.
var differing = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`(?m)^\{"level":"(?:warn|info)".*\n`), ""}, // etcdctl's log
	{regexp.MustCompile(`\b[0-9a-f]{13,16}\b`), "ID"},
	{regexp.MustCompile(`("(?:cluster_id|member_id|ID)":)[0-9]+`), "${1}ID"},
	{regexp.MustCompile(`("(?:ClusterID|MemberID)" : )[0-9]+`), "${1}ID"},
	{regexp.MustCompile(`"peerURLs":\["[^"]*"\]`), `"peerURLs":["PEER"]`},
	{regexp.MustCompile(`took( =)? \S+`), "took TIME"},
	{regexp.MustCompile(`remaining\([0-9]+s\)`), "remaining(TIME)"},
}

// tidy returns the lines of what was printed.
func (s *session) tidy(text string) []string {
	for name, value := range s.names {
		text = strings.ReplaceAll(text, value, "$"+name)
	}
	text = strings.ReplaceAll(text, s.endpoint, "ENDPOINT")
	for _, d := range differing {
		text = d.what.ReplaceAllString(text, d.as)
	}
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// write writes a session.
func write(t *testing.T, file string, steps []step) {
	t.Helper()
	var text bytes.Buffer
	for _, st := range steps {
		fmt.Fprintf(&text, "$ %s\n", st.line)
		for _, line := range st.stdin {
			fmt.Fprintf(&text, "%s\n", strings.TrimRight("< "+line, " "))
		}
		for _, line := range st.want {
			fmt.Fprintf(&text, "%s\n", line)
		}
	}
	require.NoError(t, os.WriteFile(file, text.Bytes(), 0o644))
}
