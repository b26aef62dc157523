package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/trace/report"
	"snowglobe.test/internal/diskerr"
	"snowglobe.test/internal/outfile"
	"snowglobe.test/scenarios"
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

// createReports makes sure, before anything starts, that the timelines can be written.
// What an earlier run has written stays until then.
func (o runOptions) createReports() error {
	return outfile.Try(o.report, o.perfetto)
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
