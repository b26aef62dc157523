package measure

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Usage is what a load has cost the process of the API server.
type Usage struct {
	// Apart says that the clients were in another process, so that all of it is the server's.
	Apart bool `json:"apart"`

	CPU               time.Duration `json:"cpuNS"` // while events were written and delivered
	CPUPerMillion     time.Duration `json:"cpuPerMillionDeliveriesNS"`
	AllocsPerDelivery float64       `json:"allocsPerDelivery"`
	BytesPerDelivery  float64       `json:"bytesPerDelivery"`
	// MemoryPerWatch is by how many bytes the heap and the stacks grew for each watch that was opened;
	// for fewer than 100 it says nothing, and is 0. Garbage does not count: it depends on what was
	// measured before.
	MemoryPerWatch int64 `json:"memoryPerWatchBytes"`
}

// Phase is a moment of a load at which the server's process is looked at.
type Phase string

const (
	PhaseOpening Phase = "opening" // before the watches are opened
	PhaseOpen    Phase = "open"    // all watches are open, and nothing is written
	PhaseBegun   Phase = "begun"   // the load has warmed up
	PhaseEnded   Phase = "ended"   // all watches have all events, or as many as come in time
)

// ofMemory says that only the memory of a phase matters.
func (p Phase) ofMemory() bool { return p == PhaseOpening || p == PhaseOpen }

// collections is how often garbage is collected first: twice where memory matters, as what is in a
// pool goes the second time.
func (p Phase) collections() int {
	if p.ofMemory() {
		return 2
	}
	return 0
}

// enoughWatches is the least number of watches whose memory is measured.
const enoughWatches = 100

// Meter measures the process of an API server at the phases of a load.
type Meter struct {
	watches int
	read    func(context.Context, Phase) (Sample, error)
	samples map[Phase]Sample
	err     error // why there is no sample of a phase
}

// Sample is what a process has used up to now.
type Sample struct {
	CPU           time.Duration
	Allocs, Bytes float64 // since it began
	Memory        int64   // bytes in use
}

// NewMeter returns a meter for a load with a number of watches. read measures the process.
func NewMeter(watches int, read func(context.Context, Phase) (Sample, error)) *Meter {
	return &Meter{watches: watches, read: read, samples: map[Phase]Sample{}}
}

// At takes the sample of a phase. It leaves out those of memory if there are few watches, because
// collecting garbage takes longer than a short load. If a sample fails, as for a user who may not read
// the metrics, the load goes on, and Usage returns the error.
func (m *Meter) At(ctx context.Context, p Phase) {
	if p.ofMemory() && m.watches < enoughWatches {
		return
	}
	s, err := m.read(ctx, p)
	if err != nil {
		m.err = err
	}
	m.samples[p] = s
}

// Usage returns what the process used between the phases. apart says whether the clients were in
// another process, and deliveries how many events the watches got.
func (m *Meter) Usage(apart bool, deliveries int) (*Usage, error) {
	if m.err != nil {
		return nil, fmt.Errorf("what the server uses is not known: %w", m.err)
	}
	begun, ended := m.samples[PhaseBegun], m.samples[PhaseEnded]
	grown := m.samples[PhaseOpen].Memory - m.samples[PhaseOpening].Memory
	u := &Usage{Apart: apart, CPU: ended.CPU - begun.CPU, MemoryPerWatch: grown / int64(m.watches)}
	if deliveries := float64(deliveries); deliveries > 0 {
		u.CPUPerMillion = time.Duration(float64(u.CPU) / deliveries * 1e6)
		u.AllocsPerDelivery = (ended.Allocs - begun.Allocs) / deliveries
		u.BytesPerDelivery = (ended.Bytes - begun.Bytes) / deliveries
	}
	return u, nil
}

// ReadSelf measures this process.
func ReadSelf(_ context.Context, p Phase) (s Sample, err error) {
	for range p.collections() {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	s.Memory = int64(stats.HeapAlloc + stats.StackInuse)
	s.Allocs, s.Bytes, s.CPU = float64(stats.Mallocs), float64(stats.TotalAlloc), cpuTime()
	return s, nil
}
