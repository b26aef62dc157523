package bench

import (
	"context"
	"fmt"
	"io"
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

// phase is a moment of a load at which the server's process is looked at.
type phase string

const (
	phaseOpening phase = "opening" // before the watches are opened
	phaseOpen    phase = "open"    // all watches are open, and nothing is written
	phaseBegun   phase = "begun"   // the load has warmed up
	phaseEnded   phase = "ended"   // all watches have all events, or as many as come in time
)

// weighs reports whether the memory of the process matters at a phase.
func (p phase) weighs() bool { return p == phaseOpening || p == phaseOpen }

// meter measures the process of an API server at the phases of a load.
type meter struct {
	read    func(context.Context, phase) (sample, error)
	samples map[phase]sample
	err     error // why there is no sample of a phase
}

// sample is what a process has used up to now.
type sample struct {
	cpu           time.Duration
	allocs, bytes float64
	memory        int64
}

func newMeter(read func(context.Context, phase) (sample, error)) *meter {
	return &meter{read: read, samples: map[phase]sample{}}
}

// at takes a sample. A load goes on where that fails, as for a user who may not see the metrics.
func (m *meter) at(ctx context.Context, p phase) {
	s, err := m.read(ctx, p)
	if err != nil {
		m.err = err
	}
	m.samples[p] = s
}

// usage is what the process used between the phases, nil if that is not known, which progress
// is told.
func (m *meter) usage(apart bool, load *WatchLoad, progress io.Writer) *Usage {
	if m.err != nil {
		fmt.Fprintf(progress, "%s: what the server uses is not known: %v\n", load.Transport, m.err)
		return nil
	}
	begun, ended := m.samples[phaseBegun], m.samples[phaseEnded]
	grown := m.samples[phaseOpen].memory - m.samples[phaseOpening].memory
	u := &Usage{Apart: apart, CPU: ended.cpu - begun.cpu, MemoryPerWatch: grown / int64(load.Watchers)}
	if deliveries := float64(load.allDeliveries()); deliveries > 0 {
		u.CPUPerMillion = time.Duration(float64(u.CPU) / deliveries * 1e6)
		u.AllocsPerDelivery = (ended.allocs - begun.allocs) / deliveries
		u.BytesPerDelivery = (ended.bytes - begun.bytes) / deliveries
	}
	return u
}

// readSelf measures this process.
func readSelf(_ context.Context, p phase) (s sample, err error) {
	if p.weighs() { // what is free does not count, and here there is time
		debug.FreeOSMemory()
		s.memory = residentMemory()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	s.allocs, s.bytes, s.cpu = float64(stats.Mallocs), float64(stats.TotalAlloc), cpuTime()
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
