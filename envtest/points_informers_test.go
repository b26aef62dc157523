package envtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

const crdInformer = "informer/customresourcedefinitions.apiextensions.k8s.io"

func init() {
	pointTests["informer/<resource> list"] = pointTest{show: showInformer, opts: []envtest.Option{envtest.WithFaults(
		"hold "+crdInformer+" verb=list",
		"fail informer/limitranges verb=list with=500 times=1", "hold informer/limitranges verb=list",
		"lose-reply informer/resourcequotas verb=list times=1", "hold informer/resourcequotas verb=list",
		"cancel informer/secrets verb=list times=1", "hold informer/secrets verb=list",
		"duplicate informer/nodes verb=list times=1",
		"drop informer/runtimeclasses.node.k8s.io verb=list",
	)}}
	pointTests["informer/<resource> sync"] = pointTest{show: showSync, opts: []envtest.Option{envtest.WithFaults(
		"hold "+crdInformer+" verb=sync",
		"drop informer/runtimeclasses.node.k8s.io verb=sync",
	)}}
}

// awaitEnd waits for the end of a post-start hook.
func awaitEnd(t testing.TB, cp *envtest.ControlPlane, hook string) {
	t.Helper()
	_, err := cp.Trace().Await(t.Context(), func(r trace.Record) bool {
		h, ok := r.Event.(trace.Hook)
		return ok && h.Name == hook && h.Phase == trace.End
	})
	require.NoError(t, err)
}

// lists counts the lists of a resource that the server has asked itself for, as
// far as the trace knows: a watch is in it when it begins.
func lists(cp *envtest.ControlPlane, path string) (n int) {
	for _, r := range cp.Trace().Records() {
		request, ok := r.Event.(trace.Request)
		if ok && request.User == "system:apiserver" && request.Verb == "watch" && request.Phase == trace.Start && len(request.URI) > len(path) && request.URI[:len(path)+1] == path+"?" {
			n++
		}
	}
	return n
}

func showInformer(t testing.TB, cp *envtest.ControlPlane) {
	gate := gateOf(t, cp, crdInformer+" verb=list")
	op := awaitOne(t, gate)
	assert.Equal(t, fault.Operation{Point: crdInformer, Phase: fault.Before, Server: "apiserver-0", Verb: "list", Occurrence: 1}, op)
	time.Sleep(time.Minute) // nothing comes of waiting
	assert.Zero(t, lists(cp, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"))
	assert.False(t, ready(t, cp))
	assert.Contains(t, redChecks(t, cp), "poststarthook/"+crdHook)
	gate.Open()
	awaitEnd(t, cp, crdHook)

	for resource, path := range map[string]string{"limitranges": "/api/v1/limitranges", "resourcequotas": "/api/v1/resourcequotas", "secrets": "/api/v1/secrets"} {
		again := gateOf(t, cp, "informer/"+resource+" verb=list")
		assert.Equal(t, 2, awaitOne(t, again).Occurrence, "the informer of %s asks again", resource)
		reached := 0
		if resource == "resourcequotas" {
			reached = 1 // and the answer is lost
		}
		assert.Equal(t, reached, lists(cp, path), "%s", resource)
		again.Open()
	}
	assert.Equal(t, 2, lists(cp, "/api/v1/nodes"))
	assert.Zero(t, lists(cp, "/apis/node.k8s.io/v1/runtimeclasses"))
	time.Sleep(time.Minute)
	assert.False(t, ready(t, cp))
	assert.Equal(t, []string{"informer-sync"}, redChecks(t, cp), "of what was dropped no informer is told")

	// Some minutes later the watch that has begun with the list comes to its end.
	watch := gateOf(t, cp, crdInformer+" verb=watch")
	assert.Equal(t, 1, awaitOne(t, watch).Occurrence)
	watch.Open()
	gone, err := cp.Faults().Add(fault.Rule{
		Action: fault.Action{Kind: fault.Fail, With: fault.Gone}, Match: fault.Match{Point: crdInformer, Verb: "watch", Times: 1},
	})
	require.NoError(t, err)
	watch.Remove()
	gate.Close()
	assert.Equal(t, 2, awaitOne(t, gate).Occurrence, "the informer lists again when its revision is gone")
	assert.Equal(t, 1, gone[0].Fired())
	gate.Open()
}

func showSync(t testing.TB, cp *envtest.ControlPlane) {
	gate := gateOf(t, cp, crdInformer+" verb=sync")
	op := awaitOne(t, gate)
	assert.Equal(t, fault.Operation{Point: crdInformer, Phase: fault.Before, Server: "apiserver-0", Verb: "sync", Occurrence: 1}, op)
	time.Sleep(time.Minute)
	assert.Equal(t, 1, lists(cp, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"), "the server has answered")
	assert.False(t, ready(t, cp))
	assert.Contains(t, redChecks(t, cp), "poststarthook/"+crdHook)
	gate.Open()
	awaitEnd(t, cp, crdHook)
	time.Sleep(time.Minute)
	assert.False(t, ready(t, cp))
	assert.Equal(t, []string{"informer-sync"}, redChecks(t, cp), "an answer was dropped")
	assert.Equal(t, 1, lists(cp, "/apis/node.k8s.io/v1/runtimeclasses"))
}
