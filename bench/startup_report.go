package bench

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// StartupReport is how long control planes took to start and to stop.
type StartupReport struct {
	Machine Machine `json:"machine"`
	Store   string  `json:"store"`
	Runs    int     `json:"runs"` // processes
	// Load is how long a process takes to reach main, no part of the first boot.
	Load          Timing      `json:"load"`
	FirstBoot     Timing      `json:"firstBoot"`
	FollowingBoot Timing      `json:"followingBoot"`
	Stop          Timing      `json:"stop"`
	Against       *Comparison `json:"against,omitempty"`
}

// Comparison is how long controller-runtime's envtest took, in turn with ours. It
// has started when Start returns: /healthz of etcd and kube-apiserver answer 200 and
// the default namespace exists. Ours takes longer, until /readyz, which checks more.
type Comparison struct {
	Binaries
	Start Timing `json:"start"`
	Stop  Timing `json:"stop"`
	Ratio Ratio  `json:"ratio"`
}

// Ratio holds our medians divided by envtest's; below 1 ours is faster.
type Ratio struct {
	FirstBoot     float64 `json:"firstBoot"`
	FollowingBoot float64 `json:"followingBoot"`
	Stop          float64 `json:"stop"`
}

func (c *Comparison) compare(ours *StartupReport, start, stop Timing) {
	c.Start, c.Stop = start, stop
	c.Ratio = Ratio{
		FirstBoot:     ours.FirstBoot.ratio(start),
		FollowingBoot: ours.FollowingBoot.ratio(start),
		Stop:          ours.Stop.ratio(stop),
	}
}

func (r StartupReport) writeText(w *bytes.Buffer) {
	fmt.Fprintf(w, "%s\nstore %s, %d processes\n\n", r.Machine, r.Store, r.Runs)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\tmedian\tmin\tmax\tsamples")
	row := func(name string, t Timing, ratio string) { fmt.Fprintf(table, "%s\t%s%s\n", name, t.row(), ratio) }
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

func (r StartupReport) writeBenchmark(w *bytes.Buffer) {
	r.Machine.writeHeader(w)
	cpus := r.Machine.GOMAXPROCS
	r.FirstBoot.writeBenchmark(w, "Startup/boot=first/store="+r.Store, cpus)
	r.FollowingBoot.writeBenchmark(w, "Startup/boot=following/store="+r.Store, cpus)
	r.Stop.writeBenchmark(w, "Stop/store="+r.Store, cpus)
	if r.Against != nil {
		r.Against.Start.writeBenchmark(w, "EnvtestStartup", cpus)
		r.Against.Stop.writeBenchmark(w, "EnvtestStop", cpus)
	}
}

func list(durations []time.Duration) string {
	words := make([]string, len(durations))
	for i, d := range durations {
		words[i] = round(d).String()
	}
	return strings.Join(words, " ")
}
