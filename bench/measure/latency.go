package measure

import (
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is the distribution of a duration over many events. It is exact to three
// digits, from a microsecond to a minute; longer ones count as a minute.
type Latency struct {
	Count int64         `json:"count"`
	Mean  time.Duration `json:"meanNS"`
	P50   time.Duration `json:"p50NS"`
	P90   time.Duration `json:"p90NS"`
	P99   time.Duration `json:"p99NS"`
	P999  time.Duration `json:"p99.9NS"`
	Max   time.Duration `json:"maxNS"`
}

const (
	ShortestLatency = time.Microsecond
	LongestLatency  = time.Minute
)

// Latencies collects durations, with a histogram per CPU so that few goroutines wait.
type Latencies struct {
	shards []latencyShard
}

type latencyShard struct {
	mu        sync.Mutex
	histogram *hdrhistogram.Histogram
}

// NewLatencies returns a collection without durations.
func NewLatencies() *Latencies {
	l := &Latencies{shards: make([]latencyShard, runtime.GOMAXPROCS(0))}
	for i := range l.shards {
		l.shards[i].histogram = newHistogram()
	}
	return l
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(ShortestLatency), int64(LongestLatency), 3)
}

// Record adds a duration. Callers with different numbers seldom wait for each other.
func (l *Latencies) Record(number int, d time.Duration) {
	shard := &l.shards[number%len(l.shards)]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	// It fails only for a value out of range, which the clamping prevents.
	_ = shard.histogram.RecordValue(int64(min(max(d, 0), LongestLatency)))
}

// Sum is the distribution of what was recorded.
func (l *Latencies) Sum() Latency {
	all := newHistogram()
	for i := range l.shards {
		shard := &l.shards[i]
		shard.mu.Lock()
		all.Merge(shard.histogram)
		shard.mu.Unlock()
	}
	at := func(percentile float64) time.Duration { return time.Duration(all.ValueAtPercentile(percentile)) }
	return Latency{
		Count: all.TotalCount(),
		Mean:  time.Duration(all.Mean()),
		P50:   at(50), P90: at(90), P99: at(99), P999: at(99.9),
		Max: time.Duration(all.Max()),
	}
}
