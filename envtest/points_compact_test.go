package envtest_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

func init() {
	often := []envtest.Option{envtest.WithFlags("--etcd-compaction-interval=1s")}
	pointTests["store/txn"] = pointTest{show: showTxn, onEtcd: true, opts: often}
	pointTests["store/compact"] = pointTest{show: showCompact, onEtcd: true, opts: often}
	pointTests["store/count"] = pointTest{show: showCount, alone: true} // it ends what counts; once a minute, too seldom for real time
}

// compactRound is what the compactor is about to do each time.
type compactRound struct {
	gate *fault.Gate
	held bool // there is an operation at the gate
}

// next lets go what is at the gate, and waits for what comes next.
func (c *compactRound) next(t testing.TB) fault.Operation {
	t.Helper()
	if c.held {
		c.gate.Release(1)
	}
	waiting := awaitHeld(t, c.gate)
	c.held = true
	return waiting[0]
}

// showTxn bends the transaction with which upstream's compactor begins.
func showTxn(t testing.TB, cp *envtest.ControlPlane) {
	gate, err := cp.Faults().Gate("store/txn key=compact_rev_key")
	require.NoError(t, err)
	round := compactRound{gate: gate}
	op := round.next(t)
	op.Occurrence = 0
	assert.Equal(t, fault.Operation{Point: "store/txn", Phase: fault.Before, Server: "apiserver-0", Key: "compact_rev_key"}, op)
	before := versionOf(t, cp, "compact_rev_key")
	round.next(t)
	assert.Equal(t, before+1, versionOf(t, cp, "compact_rev_key"), "released")

	remove := addRule(t, cp, "fail store/txn key=compact_rev_key with=no-leader times=1")
	round.next(t) // which came before the rule
	before = versionOf(t, cp, "compact_rev_key")
	round.next(t)
	assert.Equal(t, before, versionOf(t, cp, "compact_rev_key"), "failed")
	assert.Contains(t, cp.Log(), "compact failed: etcdserver: no leader")
	remove()

	remove = addRule(t, cp, "lose-reply store/txn key=compact_rev_key with=request-timed-out times=1")
	round.next(t)
	before = versionOf(t, cp, "compact_rev_key")
	round.next(t)
	assert.Equal(t, before+1, versionOf(t, cp, "compact_rev_key"), "it happened all the same")
	assert.Contains(t, cp.Log(), "compact failed: etcdserver: request timed out")
	remove()

	remove = addRule(t, cp, "drop store/txn key=compact_rev_key")
	round.next(t)
	before = versionOf(t, cp, "compact_rev_key")
	gate.Open()
	assert.Equal(t, before, versionOf(t, cp, "compact_rev_key"), "dropped; the compactor waits for an answer")
	remove()
}

// showCompact bends the compactor's compaction, and reads what it has to forget.
func showCompact(t testing.TB, cp *envtest.ControlPlane) {
	gate, err := cp.Faults().Gate("store/compact")
	require.NoError(t, err)
	round := compactRound{gate: gate}
	op := round.next(t)
	op.Occurrence = 0
	assert.Equal(t, fault.Operation{Point: "store/compact", Phase: fault.Before, Server: "apiserver-0"}, op)

	client := storeClient(t, cp)
	write := func() int64 {
		wrote, err := client.Put(t.Context(), "/to-forget", "")
		require.NoError(t, err)
		return wrote.Header.Revision
	}
	readable := func(revision int64) bool {
		_, err := client.Get(t.Context(), "/to-forget", clientv3.WithRev(revision))
		if err != nil {
			assert.ErrorIs(t, err, rpctypes.ErrCompacted)
		}
		return err == nil
	}
	compacted := func() { // what waits is older, and the next compacts what was there a round ago
		for range 3 {
			round.next(t)
		}
	}
	old := write()
	write()
	assert.True(t, readable(old), "held")
	compacted()
	assert.False(t, readable(old), "released")

	remove := addRule(t, cp, "fail store/compact with=unavailable")
	round.next(t)
	old = write()
	write()
	compacted()
	assert.True(t, readable(old), "failed")
	assert.Contains(t, cp.Log(), "injected at store/compact")
	remove()

	remove = addRule(t, cp, "lose-reply store/compact with=request-timed-out")
	round.next(t)
	old = write()
	write()
	compacted()
	assert.False(t, readable(old), "it happened all the same")
	assert.Contains(t, cp.Log(), "compact failed: etcdserver: request timed out")
	remove()

	remove = addRule(t, cp, "drop store/compact")
	round.next(t)
	old = write()
	gate.Open()
	assert.True(t, readable(old), "dropped; the compactor waits for an answer")
	remove()
}

// showCount bends the count of Events for the metrics: of what has a watch cache
// upstream knows the number.
func showCount(t testing.TB, cp *envtest.ControlPlane) {
	gate, err := cp.Faults().Gate("store/count resource=events")
	require.NoError(t, err)
	round := compactRound{gate: gate}
	op := round.next(t)
	op.Occurrence = 0
	assert.Equal(t, fault.Operation{Point: "store/count", Phase: fault.Before, Server: "apiserver-0", Resource: "events", Key: "/registry/events/"}, op)
	metric := func(want string) {
		t.Helper()
		metrics, err := core(cp).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		require.NoError(t, err)
		got := regexp.MustCompile(`(?m)^apiserver_resource_objects.*events.*$`).FindAllString(string(metrics), -1)
		assert.Equal(t, []string{`apiserver_resource_objects{group="",resource="events"} ` + want}, got)
	}
	counted := func() { // by both that do: Events are in two groups
		for range 4 {
			round.next(t)
		}
	}
	require.NoError(t, createEvent(t.Context(), cp, "a"))
	list, err := core(cp).Events("").List(t.Context(), metav1.ListOptions{}) // the server has made some, too
	require.NoError(t, err)
	there := fmt.Sprint(len(list.Items))
	counted()
	metric(there)

	for _, failure := range []string{"fail store/count resource=events with=unavailable", "lose-reply store/count resource=events with=timeout"} {
		remove := addRule(t, cp, failure)
		counted()
		metric("-1")
		remove()
		counted()
		metric(there)
	}

	remove := addRule(t, cp, "drop store/count resource=events")
	round.next(t)
	round.next(t) // both wait for an answer, without end
	gate.Open()
	remove()
}
