package measure

import (
	"testing"

	pprof "github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
)

func TestCPUShares(t *testing.T) {
	at := func(nanoseconds int64, functions ...string) *pprof.Sample {
		sample := &pprof.Sample{Value: []int64{1, nanoseconds}}
		for _, name := range functions {
			sample.Location = append(sample.Location, &pprof.Location{Line: []pprof.Line{{Function: &pprof.Function{Name: name}}}})
		}
		return sample
	}
	shares := sharesOf(&pprof.Profile{Sample: []*pprof.Sample{
		at(50, "crypto/aes.encrypt", "crypto/tls.(*Conn).Write", "k8s.io/apiserver/pkg/endpoints/handlers.(*WatchServer).HandleHTTP", "snowglobe.test/envtest/serve.serve"),
		at(10, "runtime.memmove", "crypto/tls.(*Conn).Write", "k8s.io/apiserver/pkg/endpoints/handlers.(*WatchServer).HandleHTTP"),
		at(20, "runtime.memmove", "encoding/json.Unmarshal", "snowglobe.test/bench.(*watcher).follow"),
		at(10, "runtime.findRunnable", "runtime.mcall"),
		at(10, "runtime.scanobject", "runtime.gcAssistAlloc", "runtime.mallocgc", "crypto/tls.(*Conn).Write"),
	}})
	assert.Equal(t, []CPUShare{
		{"HTTP/2 and TLS", 0.6, 0.6},
		{partClients, 0.2, 0.2},
		{partGarbage, 0.1, 0.1},
		{partOther, 0.1, 0.1},
		{"Snowglobe", 0, 0.5},
		{"handlers and filters of the API server", 0, 0.6},
	}, shares)
}

func TestCPUSharesOfNothing(t *testing.T) {
	_, err := CPUShares("testdata/missing.pprof")
	assert.ErrorContains(t, err, "missing.pprof")
}
