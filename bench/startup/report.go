package startup

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"snowglobe.test/bench/measure"
)

// Report is how long control planes took to start and to stop.
type Report struct {
	Machine measure.Machine `json:"machine"`
	Store   string          `json:"store"`
	Runs    int             `json:"runs"` // processes
	// Load is how long a process takes to reach main, no part of the first boot.
	Load          measure.Timing `json:"load"`
	FirstBoot     measure.Timing `json:"firstBoot"`
	FollowingBoot measure.Timing `json:"followingBoot"`
	Stop          measure.Timing `json:"stop"`
	Against       *Comparison    `json:"against,omitempty"`
}

// Comparison is how long controller-runtime's envtest took, in turn with ours. It
// has started when Start returns: /healthz of etcd and kube-apiserver answer 200 and
// the default namespace exists. Ours takes longer, until /readyz, which checks more.
type Comparison struct {
	measure.Binaries
	Start measure.Timing `json:"start"`
	Stop  measure.Timing `json:"stop"`
	Ratio Ratio          `json:"ratio"`
}

// Ratio holds our medians divided by envtest's; below 1 ours is faster.
type Ratio struct {
	FirstBoot     float64 `json:"firstBoot"`
	FollowingBoot float64 `json:"followingBoot"`
	Stop          float64 `json:"stop"`
}

// Compare fills in what envtest took, and how ours compares with that.
func (c *Comparison) Compare(ours *Report, start, stop measure.Timing) {
	c.Start, c.Stop = start, stop
	c.Ratio = Ratio{
		FirstBoot:     ours.FirstBoot.Ratio(start),
		FollowingBoot: ours.FollowingBoot.Ratio(start),
		Stop:          ours.Stop.Ratio(stop),
	}
}

func (r Report) WriteText(w *bytes.Buffer) {
	fmt.Fprintf(w, "%s\nstore %s, %d processes\n\n", r.Machine, r.Store, r.Runs)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\tmedian\tmin\tmax\tsamples")
	row := func(name string, t measure.Timing, ratio string) {
		fmt.Fprintf(table, "%s\t%s%s\n", name, t.Row(), ratio)
	}
	if r.Against == nil {
		fmt.Fprintln(table)
		row("first boot in a process", r.FirstBoot, "")
		row("following boots", r.FollowingBoot, "")
		row("stop", r.Stop, "")
		row("(loading the process)", r.Load, "")
	} else {
		times := func(ratio float64) string { return fmt.Sprintf("\t%.2fx", ratio) }
		fmt.Fprintln(table, "\tto envtest")
		row("first boot in a process", r.FirstBoot, times(r.Against.Ratio.FirstBoot))
		row("following boots", r.FollowingBoot, times(r.Against.Ratio.FollowingBoot))
		row("stop", r.Stop, times(r.Against.Ratio.Stop))
		row("(loading the process)", r.Load, "\t")
		row("envtest start", r.Against.Start, times(1))
		row("envtest stop", r.Against.Stop, times(1))
	}
	table.Flush()
	if r.Against != nil {
		fmt.Fprintf(w, `
envtest is that of controller-runtime with its defaults, on %s and %s.
Its start ends when /healthz answers 200 and the default namespace is there;
ours when /readyz does, which has more checks, and the namespace is there too.
The ratio is that of the medians.
`, r.Against.APIServer, r.Against.Etcd)
	}
}

func (r Report) WriteBenchmark(w *bytes.Buffer) {
	r.Machine.WriteHeader(w)
	cpus := r.Machine.GOMAXPROCS
	r.FirstBoot.WriteBenchmark(w, "Startup/boot=first/store="+r.Store, cpus)
	r.FollowingBoot.WriteBenchmark(w, "Startup/boot=following/store="+r.Store, cpus)
	r.Stop.WriteBenchmark(w, "Stop/store="+r.Store, cpus)
	if r.Against != nil {
		r.Against.Start.WriteBenchmark(w, "EnvtestStartup", cpus)
		r.Against.Stop.WriteBenchmark(w, "EnvtestStop", cpus)
	}
}

func list(durations []time.Duration) string {
	words := make([]string, len(durations))
	for i, d := range durations {
		words[i] = measure.Round(d).String()
	}
	return strings.Join(words, " ")
}
