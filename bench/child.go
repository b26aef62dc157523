package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/load"
	"snowglobe.test/bench/startup"
)

// What is measured in a process of its own, which is this program again.
const (
	childStartup = startup.Kind   // boots, of which the first of a process is not like the others
	childWatch   = "watch"        // watch fan-out, whose latency and CPU time differ from process to process
	childLoad    = load.ChildKind // the clients of a load, beside the process of the API server
)

// ChildRequested reports whether a measurement executed this process. If so, main must call Child
// and do nothing else.
func ChildRequested() bool { return child.Requested() != "" }

// Child reads from in what to measure, and writes what it has measured to out. Lines about its
// progress go to progress.
func Child(ctx context.Context, in io.Reader, out, progress io.Writer) error {
	begun := time.Now()
	lines := bufio.NewReader(in)
	request, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read what to measure: %w", err)
	}
	switch kind := child.Requested(); kind {
	case childStartup:
		return asked(request, func(boots startup.Request) error { return startup.Child(ctx, out, begun, boots) })
	case childWatch:
		return asked(request, func(opts WatchOptions) error {
			opts.Progress = progress
			report, err := watchHere(ctx, opts)
			return errors.Join(err, json.NewEncoder(out).Encode(report))
		})
	case childLoad:
		return asked(request, func(of load.Request) error { return load.Child(ctx, lines, out, progress, of) })
	default:
		return fmt.Errorf("what to measure is %q, and should be %s, %s or %s", kind, childStartup, childWatch,
			childLoad)
	}
}

// asked calls measure with the decoded request.
func asked[Request any](text []byte, measure func(Request) error) error {
	var request Request
	if err := json.Unmarshal(text, &request); err != nil {
		return fmt.Errorf("read what to measure: %w", err)
	}
	return measure(request)
}
