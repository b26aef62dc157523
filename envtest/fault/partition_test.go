package fault

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/trace"
)

// told is what an observer was told, and when.
type told struct {
	partitioned bool
	at          time.Duration
}

// observed returns where the calls of an observer go.
func observed(at *[]told) func(bool) {
	began := time.Now()
	return func(partitioned bool) { *at = append(*at, told{partitioned, time.Since(began)}) }
}

var toStore = Operation{Point: StorePath, Server: "a"}

// TestPartitionWindows tells an observer when the time of a rule begins and ends.
func TestPartitionWindows(t *testing.T) {
	for rule, want := range map[string][]told{
		"partition store":                          {{true, 0}},
		"partition store server=a":                 {{true, 0}},
		"partition store for=3s":                   {{true, 0}, {false, 3 * time.Second}},
		"partition store until=3s":                 {{true, 0}, {false, 3 * time.Second}},
		"partition store after=2s":                 {{true, 2 * time.Second}},
		"partition store after=2s for=3s":          {{true, 2 * time.Second}, {false, 5 * time.Second}},
		"partition store after=2s until=3s":        {{true, 2 * time.Second}, {false, 3 * time.Second}},
		"partition store server=b optional":        nil,
		"partition client optional":                nil,
		"fail store/put with=unavailable optional": nil,
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := setOf(t, Config{})
				var got []told
				stop := s.OnPartition(t.Context(), toStore, observed(&got))
				_, err := s.Add(parsed(t, rule))
				require.NoError(t, err)
				for second := range 10 {
					last := len(got) > 0 && got[len(got)-1].partitioned
					assert.Equal(t, last, s.Partitioned(toStore), "after %d seconds", second)
					time.Sleep(time.Second)
					synctest.Wait()
				}
				stop()
				s.Close()
				assert.Equal(t, want, got)
				assert.Empty(t, s.Unfired())
			})
		})
	}
}

// TestPartitionOfClients cuts off the clients that a rule names, and no other.
func TestPartitionOfClients(t *testing.T) {
	s := setOf(t, Config{}, "partition client name=client-1 server=a", "partition client caller=alice")
	for path, want := range map[Operation]bool{
		{Server: "a", Name: "client-1", Caller: "bob"}:   true,
		{Server: "b", Name: "client-1", Caller: "bob"}:   false,
		{Server: "a", Name: "client-2", Caller: "bob"}:   false,
		{Server: "b", Name: "client-2", Caller: "alice"}: true,
	} {
		path.Point = ClientPath
		assert.Equal(t, want, s.Partitioned(path), path)
	}
	assert.Equal(t, []int{1, 1}, []int{s.Rules()[0].Fired(), s.Rules()[1].Fired()})
}

// TestPartitionsOverlap heals when the last rule has gone.
func TestPartitionsOverlap(t *testing.T) {
	recorder := trace.NewRecorder("alpha", 0)
	s := setOf(t, Config{Trace: recorder}, "partition store")
	var got []told
	stop := s.OnPartition(t.Context(), toStore, func(partitioned bool) {
		got = append(got,
			told{partitioned: partitioned})
	})
	_, err := s.Add(parsed(t, "partition store server=a"))
	require.NoError(t, err)
	rules := s.Rules()
	rules[0].Remove()
	assert.Equal(t, []told{{partitioned: true}}, got)
	rules[1].Remove()
	rules[1].Remove()
	assert.Equal(t, []told{{partitioned: true}, {partitioned: false}}, got)
	stop()
	stop()
	_, err = s.Add(parsed(t, "partition store optional"))
	require.NoError(t, err)
	assert.Len(t, got, 2, "after stop")

	var recorded []string
	for _, r := range recorder.Records() {
		f := r.Event.(trace.Fault)
		assert.Equal(t, "a", f.Server)
		recorded = append(recorded, string(f.Phase)+" "+f.Rule)
	}
	assert.Equal(t, []string{"held partition store", "held partition store server=a", "released partition store",
		"released partition store server=a"}, recorded)
}

// TestPartitionIsClosed heals with the set.
func TestPartitionIsClosed(t *testing.T) {
	s := setOf(t, Config{}, "partition store for=1h")
	var got []told
	s.OnPartition(t.Context(), toStore, func(partitioned bool) { got = append(got, told{partitioned: partitioned}) })
	s.Close()
	assert.Equal(t, []told{{partitioned: true}, {partitioned: false}}, got)
	assert.False(t, (*Set)(nil).Partitioned(toStore))
}
