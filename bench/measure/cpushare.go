package measure

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	pprof "github.com/google/pprof/profile"
)

// CPUShare is how much of the CPU time of a process was spent in a part of its program.
type CPUShare struct {
	Part string `json:"part"`
	// Self is the share, from 0 to 1, of the part's own code and what it uses of Go's runtime. Total
	// includes all other parts that it calls, so what one part does for another is in the total of both.
	Self  float64 `json:"self"`
	Total float64 `json:"total"`
}

const (
	partClients = "clients and writers of the load"
	partGarbage = "garbage collection"
	partOther   = "scheduler, and other libraries"
)

// cpuParts are the parts of an API server's program, by prefixes of the names of their functions.
// The first that fits counts.
var cpuParts = []struct{ name, prefix string }{
	{partClients, "snowglobe.test/bench"},
	{partGarbage, "runtime.gcBgMarkWorker"},
	{partGarbage, "runtime.gcAssistAlloc"},
	{partGarbage, "runtime.bgsweep"},
	{partGarbage, "runtime.bgscavenge"},
	{"Snowglobe", "snowglobe.test/"},
	{"watch cache and store of the API server", "k8s.io/apiserver/pkg/storage"},
	{"handlers and filters of the API server", "k8s.io/apiserver/"},
	{"encoding and types", "k8s.io/apimachinery/"},
	{"encoding and types", "k8s.io/api/"},
	{"encoding and types", "sigs.k8s.io/"},
	{"encoding and types", "encoding/"},
	{"encoding and types", "reflect."},
	{"HTTP/2 and TLS", "net/http"},
	{"HTTP/2 and TLS", "golang.org/x/net/"},
	{"HTTP/2 and TLS", "crypto/"},
	{"HTTP/2 and TLS", "vendor/golang.org/x/"},
	{"network", "net."},
	{"network", "internal/poll."},
	{"network", "syscall."},
	{"network", "internal/runtime/syscall"},
	{"etcd", "go.etcd.io/"},
	{"etcd", "google.golang.org/"},
}

// partOf is the part of a function.
func partOf(function string) string {
	for _, part := range cpuParts {
		if strings.HasPrefix(function, part.prefix) {
			return part.name
		}
	}
	return partOther
}

// CPUShares returns the shares in a profile that was written to a file, the largest first. What
// clients in the same process call counts as theirs, whichever part the code belongs to.
func CPUShares(path string) ([]CPUShare, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	profiled, err := pprof.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("read the profile %s: %w", path, err)
	}
	return sharesOf(profiled), nil
}

func sharesOf(profiled *pprof.Profile) (shares []CPUShare) {
	all, at := 0.0, map[string]int{}
	for _, sample := range profiled.Sample {
		spent := float64(sample.Value[len(sample.Value)-1]) // a CPU profile has a count before it
		all += spent
		parts := partsOf(sample)
		for number, part := range parts {
			if _, known := at[part]; !known {
				at[part] = len(shares)
				shares = append(shares, CPUShare{Part: part})
			}
			share := &shares[at[part]]
			if number == 0 {
				share.Self += spent
			}
			if !slices.Contains(parts[:number], part) {
				share.Total += spent
			}
		}
	}
	for i := range shares {
		shares[i].Self /= all
		shares[i].Total /= all
	}
	slices.SortFunc(shares, func(a, b CPUShare) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), strings.Compare(a.Part, b.Part))
	})
	return shares
}

// partsOf are the parts of the functions that called each other, the innermost first.
func partsOf(sample *pprof.Sample) (parts []string) {
	for _, location := range sample.Location {
		for _, line := range location.Line {
			part := partOf(line.Function.Name)
			if part == partClients || part == partGarbage {
				return []string{part}
			}
			if part != partOther { // which counts as its caller's
				parts = append(parts, part)
			}
		}
	}
	if len(parts) == 0 {
		return []string{partOther}
	}
	return parts
}
