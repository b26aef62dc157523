package measure

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
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
	// MemoryPerWatch is by how many bytes the process grew for each watch that was opened, and so
	// no use for a few: of this process, as the system sees it, on Linux, and zero elsewhere; of
	// another one, what its heap and stacks have in use.
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

// weighs reports whether the memory of the process matters at a phase.
func (p Phase) weighs() bool { return p == PhaseOpening || p == PhaseOpen }

// Meter measures the process of an API server at the phases of a load.
type Meter struct {
	read    func(context.Context, Phase) (Sample, error)
	samples map[Phase]Sample
	err     error // why there is no sample of a phase
}

// Sample is what a process has used up to now.
type Sample struct {
	CPU           time.Duration
	Allocs, Bytes float64 // since it began
	Memory        int64   // bytes, where it is asked for
}

// NewMeter returns a meter that reads samples in some way.
func NewMeter(read func(context.Context, Phase) (Sample, error)) *Meter {
	return &Meter{read: read, samples: map[Phase]Sample{}}
}

// At takes a sample. A load goes on where that fails, as for a user who may not see the metrics.
func (m *Meter) At(ctx context.Context, p Phase) {
	s, err := m.read(ctx, p)
	if err != nil {
		m.err = err
	}
	m.samples[p] = s
}

// Usage is what the process used between the phases, for so many watches that were opened and
// events that they got. Clients were in another process, or not.
func (m *Meter) Usage(apart bool, watches, deliveries int) (*Usage, error) {
	if m.err != nil {
		return nil, fmt.Errorf("what the server uses is not known: %w", m.err)
	}
	begun, ended := m.samples[PhaseBegun], m.samples[PhaseEnded]
	grown := m.samples[PhaseOpen].Memory - m.samples[PhaseOpening].Memory
	u := &Usage{Apart: apart, CPU: ended.CPU - begun.CPU, MemoryPerWatch: grown / int64(watches)}
	if deliveries := float64(deliveries); deliveries > 0 {
		u.CPUPerMillion = time.Duration(float64(u.CPU) / deliveries * 1e6)
		u.AllocsPerDelivery = (ended.Allocs - begun.Allocs) / deliveries
		u.BytesPerDelivery = (ended.Bytes - begun.Bytes) / deliveries
	}
	return u, nil
}

// ReadSelf measures this process.
func ReadSelf(_ context.Context, p Phase) (s Sample, err error) {
	if p.weighs() { // what is free does not count, and here there is time
		debug.FreeOSMemory()
		s.Memory = residentMemory()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	s.Allocs, s.Bytes, s.CPU = float64(stats.Mallocs), float64(stats.TotalAlloc), cpuTime()
	return s, nil
}

// residentMemory is how many bytes this process has in memory beside its program and other
// files, 0 if that is not known.
func residentMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, anonymous, _ := strings.Cut(string(status), "RssAnon:")
	var kibibytes int64
	if _, err := fmt.Sscan(anonymous, &kibibytes); err != nil {
		return 0
	}
	return kibibytes << 10
}
