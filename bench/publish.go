package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/measure"
	"snowglobe.test/internal/outfile"
	"snowglobe.test/internal/tempdir"
)

// PublishOptions describe the measurements of a page about watch fan-out.
type PublishOptions struct {
	// Folder gets PERFORMANCE.md, and in a folder performance the plots and the raw data.
	Folder string
	// Only are the parts to measure, of PublishParts; empty means all. The page has them all, as they
	// were measured last.
	Only []string
	// Keep measures nothing: the page is written from the raw data that is there.
	Keep bool
	// Against is what is measured in turn with ours: a folder with kube-apiserver and etcd, or
	// measure.AgainstStock. Empty means nothing.
	Against string
	// Duration is how long events are written at each rate that is tried. Zero means 2 s.
	Duration time.Duration
	// Watchers are how many watch; empty means 1, 10, 100, 1,000 and 10,000.
	Watchers []int
	// Most is how many watch in the part for the most; zero means 100,000.
	Most int
	// Progress gets a line now and then; it may be nil.
	Progress io.Writer
}

// The parts of a page: the curves of each encoding, as many watchers as a machine holds, and where
// the time goes.
const (
	partMost   = "most"
	partShares = "shares"
)

// PublishParts are the parts of a page that can be measured by themselves.
var PublishParts = []string{"json", "protobuf", encodingCBOR, partMost, partShares}

func (o PublishOptions) withDefaults() PublishOptions {
	defaultTo(&o.Duration, 2*time.Second)
	defaultTo(&o.Most, maxWatchers)
	defaultTo(&o.Progress, io.Discard)
	if len(o.Watchers) == 0 {
		o.Watchers = []int{1, 10, 100, 1_000, 10_000}
	}
	if len(o.Only) == 0 {
		o.Only = PublishParts
	}
	if o.Keep {
		o.Only = nil
	}
	return o
}

func (o PublishOptions) validate() error {
	switch {
	case o.Folder == "":
		return errors.New("give a folder for the page")
	case o.Duration < 0:
		return fmt.Errorf("a duration of %s: it must be positive", o.Duration)
	}
	for _, watchers := range append(slices.Clone(o.Watchers), o.Most) {
		if watchers < 1 || watchers > maxWatchers {
			return fmt.Errorf("%d watchers: give a number from 1 to %d", watchers, maxWatchers)
		}
	}
	for _, part := range o.Only {
		if !slices.Contains(PublishParts, part) {
			return fmt.Errorf("part %q is unknown; use %s", part, strings.Join(PublishParts, ", "))
		}
	}
	return nil
}

// Publish measures what a page about watch fan-out on this machine says, and writes the page. Each
// part is there when it has been measured, whatever comes after it.
func Publish(ctx context.Context, opts PublishOptions) error {
	opts = opts.withDefaults()
	if ChildRequested() {
		return child.ErrRequested
	}
	err := opts.validate()
	if err == nil {
		err = opts.publish(ctx)
	}
	if err != nil {
		return fmt.Errorf("bench publish: %w", err)
	}
	return nil
}

func (o PublishOptions) publish(ctx context.Context) error {
	if o.Keep {
		return o.write()
	}
	if err := outfile.Try(o.page()); err != nil {
		return err
	}
	against := WatchOptions{Against: o.Against, Progress: o.Progress}
	if !slices.ContainsFunc(o.Only, func(part string) bool { return encodings[part].accepted != "" }) {
		against.Against = "" // only curves have a peer
	}
	var used *measure.Binaries
	return against.withStock(ctx, &used, func(with WatchOptions) error {
		o.Against = with.Against
		for _, part := range o.Only {
			began := time.Now()
			measured, err := o.measure(ctx, part)
			if err == nil {
				err = o.keep(part, measured)
			}
			if err == nil {
				err = o.write()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", part, err)
			}
			fmt.Fprintf(o.Progress, "%s: measured in %s\n", part, measure.Round(time.Since(began)))
		}
		return nil
	})
}

func (o PublishOptions) page() string { return filepath.Join(o.Folder, "PERFORMANCE.md") }

func (o PublishOptions) data() string { return filepath.Join(o.Folder, "performance") }

func (o PublishOptions) file(part string) string { return filepath.Join(o.data(), part+".json") }

// keep writes the raw data of a part.
func (o PublishOptions) keep(part string, measured any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(measured); err != nil {
		return err
	}
	return outfile.Write(o.file(part), text.Bytes())
}

func (o PublishOptions) measure(ctx context.Context, part string) (any, error) {
	load := WatchOptions{Duration: o.Duration, Progress: o.Progress}
	switch part {
	case partShares:
		return o.shares(ctx)
	case partMost:
		load.Transport = TransportProcess
		return o.sweep(ctx, load, o.Most)
	}
	load.Encoding, load.Against, load.Floors = part, o.Against, true
	load.again = part != PublishParts[0]
	return o.sweep(ctx, load, o.Watchers...)
}

func (o PublishOptions) sweep(ctx context.Context, load WatchOptions, watchers ...int) (SweepReport, error) {
	report, err := WatchSweep(ctx, SweepOptions{WatchOptions: load, Sweep: Sweep{"watchers", watchers}})
	if report.Against != nil {
		report.Against.Folder = "" // it says nothing elsewhere
	}
	return report, err
}

// SharesReport is where the time of a control plane goes, for a load that leaves the machine some.
type SharesReport struct {
	Machine measure.Machine `json:"machine"`
	Date    time.Time       `json:"date"`
	Loads   []SharesLoad    `json:"loads"`
}

// SharesLoad is a load with the shares of its server's CPU time.
type SharesLoad struct {
	WatchLoad
	CPU []measure.CPUShare `json:"cpu"`
}

// The load whose shares are measured: some 10,000 deliveries a second.
const (
	sharesWatchers = 1000
	sharesRate     = 10
)

func (o PublishOptions) shares(ctx context.Context) (report SharesReport, err error) {
	folder, err := tempdir.Make("bench")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	load := WatchOptions{
		Watchers: min(sharesWatchers, slices.Max(o.Watchers)), Rate: sharesRate, Duration: 5 * o.Duration,
		Stages: true, Profile: folder.Path(), Progress: o.Progress,
	}
	watched, err := Watch(ctx, load)
	report = SharesReport{Machine: watched.Machine, Date: time.Now().UTC().Truncate(time.Second)}
	for _, load := range watched.Loads {
		profiles := measure.Profiler{Folder: folder.Path(), Name: load.Transport}
		shares, sharesErr := measure.CPUShares(profiles.Path("cpu"))
		err = errors.Join(err, sharesErr)
		report.Loads = append(report.Loads, SharesLoad{load, shares})
	}
	return report, err
}

// published is the raw data of a page.
type published struct {
	Curves map[string]*SweepReport // by encoding
	Most   *SweepReport
	Shares *SharesReport
}

// read reads the raw data that is there.
func (o PublishOptions) read() (published, error) {
	p := published{Curves: map[string]*SweepReport{}}
	into := map[string]func() any{
		partMost:   func() any { p.Most = &SweepReport{}; return p.Most },
		partShares: func() any { p.Shares = &SharesReport{}; return p.Shares },
	}
	for _, encoding := range slices.Sorted(maps.Keys(encodings)) {
		into[encoding] = func() any { p.Curves[encoding] = &SweepReport{}; return p.Curves[encoding] }
	}
	for _, part := range PublishParts {
		text, err := os.ReadFile(o.file(part))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(text, into[part]())
		}
		if err != nil {
			return p, fmt.Errorf("read the raw data: %s: %w", o.file(part), err)
		}
	}
	if p.Any() == nil && p.Shares == nil {
		return p, fmt.Errorf("there is no raw data in %s: measure it first, without --keep", o.data())
	}
	return p, nil
}
