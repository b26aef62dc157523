// Package measure is what measurements count, on which machine, and beside which programs: times
// and their distributions, and the CPU and memory of a process.
package measure

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// Machine says where a measurement was made; its numbers mean little without that.
type Machine struct {
	GOOS       string `json:"goos"`
	GOARCH     string `json:"goarch"`
	CPU        string `json:"cpu,omitempty"` // model, if known
	GOMAXPROCS int    `json:"gomaxprocs"`
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes,omitempty"` // the linked release
}

// ThisMachine is where this process runs, linked with a release of Kubernetes.
func ThisMachine(kubernetes string) Machine {
	return Machine{
		GOOS: runtime.GOOS, GOARCH: runtime.GOARCH, CPU: cpuModel(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		Go: runtime.Version(), Kubernetes: kubernetes,
	}
}

// cpuModel returns what go test prints as "cpu:", on Linux only.
func cpuModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(info)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return ""
}

// String describes the machine for people.
func (m Machine) String() string {
	words := []string{fmt.Sprintf("%s/%s", m.GOOS, m.GOARCH), fmt.Sprintf("%d CPUs", m.GOMAXPROCS), m.Go}
	if m.CPU != "" {
		words = append(words, m.CPU)
	}
	if m.Kubernetes != "" {
		words = append(words, "Kubernetes "+m.Kubernetes)
	}
	return strings.Join(words, ", ")
}

// WriteHeader writes the lines that go test prints above benchmarks.
func (m Machine) WriteHeader(w io.Writer) {
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: snowglobe.test/bench\n", m.GOOS, m.GOARCH)
	if m.CPU != "" {
		fmt.Fprintf(w, "cpu: %s\n", m.CPU)
	}
}
