package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"snowglobe.test/fakes/stub"
	"snowglobe.test/internal/broadcast"
)

// Line is one line of a log.
type Line struct {
	Time   time.Time
	Stderr bool // it was written to stderr, not to stdout
	Text   string
}

// Log is what a container writes. The zero value is an empty log of a container that
// runs. It may be used by several goroutines at once.
type Log struct {
	mu       sync.Mutex
	lines    []Line
	previous []Line // of the container before the last Restart
	restarts int
	ended    bool
	changed  broadcast.News
}

// Print appends lines of stdout, written now.
func (l *Log) Print(lines ...string) {
	for _, text := range lines {
		l.Append(Line{Time: time.Now(), Text: text})
	}
}

// Append appends lines as they are.
func (l *Log) Append(lines ...Line) {
	l.change(func() { l.lines = append(l.lines, lines...) })
}

// End says that the container has ended: requests that follow the log end after its last line.
func (l *Log) End() { l.change(func() { l.ended = true }) }

// Restart begins a new log, which is not ended. The old one is ended, and is what the
// parameter "previous" asks for.
func (l *Log) Restart() {
	l.change(func() {
		l.lines, l.previous = nil, l.lines
		l.ended = false
		l.restarts++
	})
}

func (l *Log) change(how func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	how()
	l.changed.Tell()
}

// after returns the lines from the given one on, whether there will be no more, and a
// channel that is closed when it is worth asking again. restarts says of which container:
// if the log has been restarted since, there will be no more lines.
func (l *Log) after(line, restarts int) (lines []Line, ended bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case restarts == l.restarts:
		return l.lines[line:], l.ended, l.changed.Next()
	case restarts == l.restarts-1:
		return l.previous[line:], true, l.changed.Next()
	default:
		return nil, true, l.changed.Next()
	}
}

// logQuery is which part of a log is wanted, and how.
type logQuery struct {
	follow, previous, timestamps bool
	since                        time.Time // zero means all
	tailLines, limitBytes        int64     // -1 means all
	stdout, stderr               bool
}

func newLogQuery(query url.Values) (logQuery, error) {
	q := logQuery{tailLines: -1, limitBytes: -1, stdout: true, stderr: true}
	var bad bool
	number := func(name string, least int64) int64 {
		s := query.Get(name)
		if s == "" {
			return -1
		}
		n, err := strconv.ParseInt(s, 10, 64)
		bad = bad || err != nil || n < least
		return n
	}
	boolean := func(name string) bool {
		s := query.Get(name)
		return s != "" && s != "0" && s != "false"
	}
	q.follow, q.previous, q.timestamps = boolean("follow"), boolean("previous"), boolean("timestamps")
	q.tailLines, q.limitBytes = number("tailLines", 0), number("limitBytes", 1)
	if seconds := number("sinceSeconds", 1); seconds > 0 {
		q.since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	if s := query.Get("sinceTime"); s != "" {
		since, err := time.Parse(time.RFC3339, s)
		bad = bad || err != nil || !q.since.IsZero()
		q.since = since
	}
	switch stream := query.Get("stream"); stream {
	case "", "All":
	case "Stdout", "Stderr":
		q.stdout, q.stderr = stream == "Stdout", stream == "Stderr"
		bad = bad || q.tailLines >= 0 // as upstream's validation has it
	default:
		bad = true
	}
	if bad {
		return q, text(http.StatusUnprocessableEntity, `{"message": "Invalid request."}`)
	}
	return q, nil
}

// logs answers containerLogs.
func (c *Container) logs(query url.Values) (Answer, error) {
	q, err := newLogQuery(query)
	if err != nil {
		return Answer{}, err
	}
	c.Log.mu.Lock()
	restarts, start := c.Log.restarts, 0
	lines := c.Log.lines
	if q.previous {
		restarts--
		lines = c.Log.previous
	}
	c.Log.mu.Unlock()
	if restarts < 0 {
		return Answer{}, text(http.StatusBadRequest, "previous terminated container %q not found", c.Name)
	}
	if q.tailLines >= 0 {
		start = max(0, len(lines)-int(min(q.tailLines, int64(len(lines)))))
	}
	return Answer{Logs: func(ctx context.Context, w io.Writer) error {
		return c.Log.write(ctx, w, q, start, restarts)
	}}, nil
}

// write writes the lines that are wanted until there are no more.
func (l *Log) write(ctx context.Context, w io.Writer, q logQuery, line, restarts int) error {
	left := q.limitBytes
	for {
		lines, ended, changed := l.after(line, restarts)
		line += len(lines)
		for _, each := range lines {
			bytes := q.format(each)
			if len(bytes) == 0 {
				continue
			}
			if left >= 0 && int64(len(bytes)) > left {
				bytes = bytes[:left]
			}
			if _, err := w.Write(bytes); err != nil {
				return err
			}
			if left >= 0 {
				left -= int64(len(bytes))
			}
			if left == 0 {
				return nil
			}
		}
		if ended || !q.follow {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// format returns the line as it is to be sent, nothing if it isn't wanted.
func (q logQuery) format(line Line) []byte {
	if line.Time.Before(q.since) || line.Stderr && !q.stderr || !line.Stderr && !q.stdout {
		return nil
	}
	if !q.timestamps {
		return []byte(line.Text + "\n")
	}
	const format = "2006-01-02T15:04:05.000000000Z07:00" // RFC3339Nano with all digits
	return []byte(line.Time.Format(format) + " " + line.Text + "\n")
}

// serveLogs sends what a function writes, as it is written.
func (k *Kubelet) serveLogs(w http.ResponseWriter, r *http.Request, request Request, answer Answer) {
	if answer.Logs == nil {
		stub.WriteError(w, fmt.Errorf("the rule that answers the logs of %s/%s has no Logs: set Answer.Logs", request.Namespace, request.Pod))
		return
	}
	session, err := k.begin(request, "", 0), errNoReturn
	defer func() { k.end(session, 0, err) }()
	out := &flushed{ResponseWriter: w}
	err = answer.Logs(r.Context(), out)
	switch {
	case err == nil:
	case out.written || errors.Is(err, stub.ErrBreak):
		panic(http.ErrAbortHandler) // it is too late for a status
	default:
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// flushed sends each write at once.
type flushed struct {
	http.ResponseWriter
	written bool
}

// Write implements io.Writer.
func (f *flushed) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	f.written = true
	n, err := f.ResponseWriter.Write(p)
	if err != nil {
		return n, err
	}
	return n, http.NewResponseController(f.ResponseWriter).Flush()
}
