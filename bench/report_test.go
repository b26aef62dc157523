package bench

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/results"
	"snowglobe.test/bench/startup"
)

var someMachine = measure.Machine{GOOS: "plan9", GOARCH: "arm", CPU: "abacus", GOMAXPROCS: 3, Go: "go1.26",
	Kubernetes: "v1.37.1"}

func someStartup() startup.Report {
	ms := func(values ...time.Duration) measure.Timing {
		for i := range values {
			values[i] *= time.Millisecond
		}
		return measure.NewTiming(values)
	}
	report := startup.Report{
		Machine: someMachine, Store: measure.StoreMemory, Runs: 2,
		Load: ms(100, 120), FirstBoot: ms(1000, 1200), FollowingBoot: ms(500, 600, 700), Stop: ms(10, 30),
		Against: &startup.Comparison{Binaries: measure.Binaries{Folder: "bin", APIServer: "Kubernetes v1.37.1",
			Etcd: "etcd Version: 3.7.3"}},
	}
	report.Against.Compare(&report, ms(2000, 2400), ms(1000))
	return report
}

func someWatch() results.WatchReport {
	latency := measure.Latency{Count: 40, Mean: 2e6, P50: 1e6, P90: 2e6, P99: 3e6, P999: 4e6, Max: 5e6}
	load := results.WatchLoad{
		Shape: load.Shape{Encoding: "json", Store: measure.StoreMemory, Resource: "configmaps",
			Watchers: 2, Writers: 1, PayloadBytes: 256, StreamsPerConnection: 1, Namespaces: 1, Selectors: 1},
		Transport:           TransportProcess,
		RateAsked:           10,
		Rate:                9.5,
		Events:              20,
		Deliveries:          40,
		DeliveriesPerSecond: 19.5,
		Latency:             latency,
		WriteLatency:        latency,
		Server: &measure.Usage{CPU: time.Second, CPUPerMillion: 25 * time.Second, AllocsPerDelivery: 12.5,
			BytesPerDelivery: 2048, MemoryPerWatch: 10_240},
	}
	lossy := load
	apart := *load.Server
	apart.Apart, lossy.Server = true, &apart
	lossy.Transport, lossy.Lost, lossy.Deliveries, lossy.DeliveriesPerSecond = TransportTLS, 1, 39, 15
	return results.WatchReport{Machine: someMachine, Loads: []results.WatchLoad{load, lossy}}
}

func TestReports(t *testing.T) {
	for name, test := range map[string]struct {
		report results.Report
		format results.Format
		want   string
	}{
		"startup": {someStartup(), results.FormatText, `plan9/arm, 3 CPUs, go1.26, abacus, Kubernetes v1.37.1
store memory, 2 processes

                         median  min    max    samples  to envtest
first boot in a process  1.1s    1s     1.2s   2        0.50x
following boots          600ms   500ms  700ms  3        0.27x
stop                     20ms    10ms   30ms   2        0.02x
(loading the process)    110ms   100ms  120ms  2        
envtest start            2.2s    2s     2.4s   2        1.00x
envtest stop             1s      1s     1s     1        1.00x

envtest is that of controller-runtime with its defaults, on Kubernetes v1.37.1 and etcd Version: 3.7.3.
Its start ends when /healthz answers 200 and the default namespace is there;
ours when /readyz does, which has more checks, and the namespace is there too.
The ratio is that of the medians.
`},
		"startup for benchstat": {someStartup(), results.FormatBenchmark, `goos: plan9
goarch: arm
pkg: snowglobe.test/bench
cpu: abacus
BenchmarkStartup/boot=first/store=memory-3	1	1000000000 ns/op
BenchmarkStartup/boot=first/store=memory-3	1	1200000000 ns/op
BenchmarkStartup/boot=following/store=memory-3	1	500000000 ns/op
BenchmarkStartup/boot=following/store=memory-3	1	600000000 ns/op
BenchmarkStartup/boot=following/store=memory-3	1	700000000 ns/op
BenchmarkStop/store=memory-3	1	10000000 ns/op
BenchmarkStop/store=memory-3	1	30000000 ns/op
BenchmarkEnvtestStartup-3	1	2000000000 ns/op
BenchmarkEnvtestStartup-3	1	2400000000 ns/op
BenchmarkEnvtestStop-3	1	1000000000 ns/op
`},
		"watch": {someWatch(), results.FormatText, `plan9/arm, 3 CPUs, go1.26, abacus, Kubernetes v1.37.1
watchers 2, writers 1, events 20 of 256 bytes, configmaps, json, store memory

                        process  tls
events/s asked          10       10
events/s written        10       10
events/s delivered      20       15
delivery p50            1ms      1ms
delivery p90            2ms      2ms
delivery p99            3ms      3ms
delivery p99.9          4ms      4ms
delivery max            5ms      5ms
write p50               1ms      1ms
write p90               2ms      2ms
write p99               3ms      3ms
write p99.9             4ms      4ms
write max               5ms      5ms
CPU/million deliveries  25s*     25s
allocations/delivery    12.5*    12.5
bytes/delivery          2048*    2048
memory/watch            10 KiB*  10 KiB
lost                    0        1
duplicate               0        0
out of order            0        0
not selected            0        0
watches restarted       0        0

* of the server and its clients, which were in one process

tls: fewer events arrived than were asked for. The machine was saturated, so the
latencies are those of a growing queue: lower the rate or the number of watchers.
`},
		"sweep": {results.SweepReport{Machine: someMachine, Option: "watchers", Objective: 50 * time.Millisecond,
			Points: []results.SweepPoint{
				{Value: 2, Transport: TransportProcess, Encoding: "json", Trials: 3, Best: &someWatch().Loads[0]},
				{Value: 20, Transport: TransportProcess, Encoding: "json", Trials: 2},
			}}, results.FormatText, `plan9/arm, 3 CPUs, go1.26, abacus, Kubernetes v1.37.1
the highest rate at which p99 is at most 50ms

transport  encoding  watchers  events/s  deliveries/s  p50  p99  p99.9  server's CPU/million  memory/watch
process    json      2         10        19.5          1ms  3ms  4ms    25s                   10 KiB
process    json      20        -         -             -    -    -      -                     -
`},
		"watch for benchstat": {results.WatchReport{Machine: someMachine, Loads: someWatch().Loads[:1]},
			results.FormatBenchmark, `Unit events/s better=higher
goos: plan9
goarch: arm
pkg: snowglobe.test/bench
cpu: abacus
BenchmarkWatch/transport=process/watchers=2/rate=10/encoding=json/resource=configmaps/store=memory-3	40	2e+06 mean-ns	1e+06 p50-ns	2e+06 p90-ns	3e+06 p99-ns	4e+06 p99.9-ns	5e+06 max-ns	19.5 events/s	25 cpu-s/million	2048 B/delivery	12.5 allocs/delivery	10240 B/watch
`},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			require.NoError(t, results.Write(&got, test.format, test.report))
			assert.Equal(t, test.want, got.String(), "got:\n%s\nwant", &got)
		})
	}
	decodes(t, someStartup())
	decodes(t, someWatch())
	assert.Error(t, results.Write(&bytes.Buffer{}, "xml", someWatch()), "format xml is not refused")
}
