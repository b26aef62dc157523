package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/trace/report"
	"snowglobe.test/internal/diskerr"
	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/script"
	"snowglobe.test/scenarios/story"
)

// reports reports whether a timeline is to be written.
func (o runOptions) reports() bool { return o.report != "" || o.perfetto != "" }

// writeReports writes the timelines of a script that were asked for.
func (o runOptions) writeReports(result scenarios.Result) error {
	run := report.Run{Name: result.Script.Name, Records: result.Records}
	if result.Err != nil {
		run.Failed = &report.Failure{Line: result.Line, Text: result.Err.Error()}
	}
	page := report.Page{Title: result.Script.Name, Runs: []report.Run{run}}
	return errors.Join(
		writeFile(o.report, func(w io.Writer) error { return report.WriteHTML(w, page) }),
		writeFile(o.perfetto, func(w io.Writer) error { return report.WritePerfetto(w, result.Records) }),
	)
}

// writeFile writes a file; an empty path is none.
func writeFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return onDisk(path, err)
	}
	return onDisk(path, errors.Join(write(file), file.Close()))
}

// onDisk says what is wrong with the disk of a file, if that is it.
func onDisk(path string, err error) error { return diskerr.OrSame(filepath.Dir(path), err) }

func newTraceReport() *cobra.Command {
	var html, perfetto string
	cmd := &cobra.Command{
		Use:   "report EVENTS [EVENTS]",
		Short: "Make a page that shows one run, or two and where they diverge",
		Long: `Make a page with the timeline of one run in swim lanes, or of two runs and the point
where they diverge, from files written by run --events.`,
		Example: `  snowglobe run --seed 1 --trace a.trace --events a.jsonl stale-read
  snowglobe run --seed 2 --trace b.trace --events b.jsonl stale-read
  snowglobe trace report --html both.html a.jsonl b.jsonl`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if html == "" && perfetto == "" {
				return errors.New("nothing to write; say where to, with --html or --perfetto")
			}
			if perfetto != "" && len(args) > 1 {
				return errors.New("--perfetto is for one run")
			}
			page := report.Page{}
			for _, path := range args {
				records, err := readEvents(path)
				if err != nil {
					return failed(err)
				}
				page.Runs = append(page.Runs, report.Run{Name: filepath.Base(path), Records: records})
			}
			return failed(errors.Join(
				writeFile(html, func(w io.Writer) error { return report.WriteHTML(w, page) }),
				writeFile(perfetto, func(w io.Writer) error { return report.WritePerfetto(w, page.Runs[0].Records) }),
			))
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "write an HTML page to this `file`")
	cmd.Flags().StringVar(&perfetto, "perfetto", "", "write trace events for ui.perfetto.dev to this `file`")
	return cmd
}

func readEvents(path string) (_ []trace.Record, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	records, err := trace.ReadJSON(file)
	if err != nil {
		return nil, fmt.Errorf("events: %s: %w", path, err)
	}
	return records, nil
}

// lineReporter reports to people who run the whole library: a line for each story as it
// ends, and all of one that does not pass.
type lineReporter struct {
	stories storyReporter
	width   int // of the names
}

func newLineReporter(out io.Writer, scripts []script.Script) *lineReporter {
	r := &lineReporter{stories: storyReporter{out: out, color: wantsColor(out)}}
	for _, one := range scripts {
		r.width = max(r.width, len(one.Name))
	}
	return r
}

func (r *lineReporter) begin(script.Script) {}

func (r *lineReporter) script(result scenarios.Result) error {
	out, color := r.stories.out, r.stories.color
	if result.Status == scenarios.Failed || result.Status == scenarios.NotRun {
		r.stories.begin(result.Script)
		err := r.stories.script(result)
		fmt.Fprintln(out)
		return err
	}
	line := fmt.Sprintf("%s  %-*s  %8s", r.stories.mark(result.Status), r.width, result.Script.Name, round(result.Scripted))
	about := firstSentence(result.Script.Title())
	if result.Status == scenarios.Skipped {
		about = result.Reason
	}
	const marks = len("✓ passed    ") // what paint adds takes no room
	_, err := fmt.Fprintf(out, "%s  %s\n", line, story.Paint(color, faint, cut(about, columns(out)-r.width-marks-len("  12345678"))))
	return err
}

// firstSentence is how a text begins.
func firstSentence(text string) string {
	if end := strings.Index(text, ". "); end >= 0 {
		return text[:end+1]
	}
	return text
}

// cut shortens a text to a width; any is wide enough if there is no terminal.
func cut(text string, width int) string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

func (r *lineReporter) summarize(results []scenarios.Result, wall time.Duration) error {
	out, color := r.stories.out, r.stories.color
	fmt.Fprintf(out, "\n%s in %s\n", story.Paint(color, bold, counted(results)), round(wall))
	_, err := fmt.Fprintln(out, story.Paint(color, faint, "run NAME tells a story, and run -v tells all; the times are of the scripts' own clocks"))
	return err
}
