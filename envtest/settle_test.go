package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/envtest/virtualtime"
)

// burst writes a number of config maps, one after another.
func burst(t *testing.T, cp *envtest.ControlPlane, n int) {
	t.Helper()
	configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
	for i := range n {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("burst-%d", i)}}
		_, err := configMaps.Create(t.Context(), object, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

// After a burst of writes everybody has everything, and no time has passed.
func TestSettle(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		client := kubernetes.NewForConfigOrDie(cp.Config())
		factory := informers.NewSharedInformerFactory(client, 0)
		informer := factory.Core().V1().ConfigMaps().Informer()
		factory.StartWithContext(t.Context())
		settled := settle(t, cp)
		before := len(informer.GetStore().List())
		burst(t, cp, 50)
		start := time.Now()
		after := settle(t, cp)
		assert.Empty(t, after.Held)
		assert.GreaterOrEqual(t, after.Revision, settled.Revision+50)
		assert.Len(t, informer.GetStore().List(), before+50)
		list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(after.Revision), list.ResourceVersion, "a cache of what no client has written is not where the store is")
		assert.Zero(t, time.Since(start))
	}, envtest.WithoutLatency())
}

// Where work takes time, Settle waits until it is done.
func TestSettleWaitsForWork(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(cp.Config()), 0)
		informer := factory.Core().V1().ConfigMaps().Informer()
		factory.StartWithContext(t.Context())
		start := time.Now()
		settle(t, cp)
		assert.True(t, informer.HasSynced(), "its list was under way")
		assert.Less(t, time.Since(start), 100*time.Millisecond)
	})
}

// What a rule holds is named, and Settle does not wait for its request.
func TestSettleHeld(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		settle(t, cp)
		gate, err := cp.Faults().Gate("http/create resource=configmaps")
		require.NoError(t, err)
		created := make(chan struct{})
		go func() { defer close(created); burst(t, cp, 1) }()
		start := time.Now()
		held := settle(t, cp).Held
		assert.Equal(t, gate.Waiting(), held)
		assert.Len(t, held, 1)
		assert.Zero(t, time.Since(start))
		gate.Open()
		<-created
		assert.Empty(t, settle(t, cp).Held)
	}, envtest.WithoutLatency())
}

// A delay is over by itself, so it is waited for.
func TestSettleWaitsForDelays(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		settle(t, cp)
		start, done := time.Now(), make(chan struct{})
		addRules(t, cp, "delay http/create resource=configmaps by=3s")
		go func() { defer close(done); burst(t, cp, 1) }()
		assert.Empty(t, settle(t, cp).Held)
		assert.GreaterOrEqual(t, time.Since(start), 3*time.Second)
		<-done
		assert.Less(t, time.Since(start), 5*time.Second)
	})
}

// An informer of the server that has lost its watch comes back by itself, after a
// while, so it is waited for.
func TestSettleWaitsForInformers(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		settle(t, cp)
		start := time.Now()
		addRules(t, cp, "cancel watch/namespaces verb=added name=new caller=system:apiserver times=1",
			"fail http/watch resource=namespaces caller=system:apiserver with=500 times=1")
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
		_, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
		require.NoError(t, err)
		settle(t, cp)
		assert.Positive(t, time.Since(start))
		assert.Less(t, time.Since(start), 10*time.Second)
	})
}

// The cache that is held is behind the store, and the only one.
func TestSettleHeldCache(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		settle(t, cp)
		client := kubernetes.NewForConfigOrDie(cp.Config())
		cached := func() int {
			list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
			require.NoError(t, err)
			return len(list.Items)
		}
		before := cached()
		frozen := inject(t, cp, "freeze cache/configmaps")
		burst(t, cp, 3)
		start := time.Now()
		held := settle(t, cp).Held
		require.NotEmpty(t, held)
		for _, op := range held {
			assert.Equal(t, "cache/configmaps", op.Point)
		}
		assert.Zero(t, time.Since(start))
		assert.Equal(t, before, cached())
		frozen.Remove()
		assert.Empty(t, settle(t, cp).Held)
		assert.Equal(t, before+3, cached())
	})
}

func addRules(t *testing.T, cp *envtest.ControlPlane, rules ...string) {
	t.Helper()
	plan, err := fault.ParsePlan("", strings.Join(rules, "\n"), nil)
	require.NoError(t, err)
	_, err = cp.Faults().Add(plan...)
	require.NoError(t, err)
}

func settle(t *testing.T, cp *envtest.ControlPlane) envtest.Settled {
	t.Helper()
	settled, err := cp.Settle(t.Context())
	require.NoError(t, err)
	return settled
}

// A request that is being handled is waited for, in virtual time until the server
// has had enough of it.
func TestSettleWaitsForRequests(t *testing.T) {
	const timeout = 5 * time.Second // a minute of looking is seconds of work
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		settle(t, cp)
		answered := neverEnding(t, cp)
		start := time.Now()
		settle(t, cp)
		select {
		case code := <-answered:
			assert.Equal(t, http.StatusGatewayTimeout, code)
		default:
			t.Error("settled while a request was in flight")
		}
		assert.GreaterOrEqual(t, time.Since(start), timeout)
	}, envtest.WithFlags("--request-timeout="+timeout.String()))
}

// In real time Settle is bounded by its context, and says what it has waited for.
func TestSettleInRealTime(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]storage.Backend{
		"memory": memory.New("settle"), "embedded": embedded.New(embedded.Config{}),
	} {
		t.Run(name, func(t *testing.T) { settleInRealTime(t, envtest.Start(t, envtest.WithStore(store))) })
	}
}

func settleInRealTime(t *testing.T, cp *envtest.ControlPlane) {
	burst(t, cp, 20)
	settled := settle(t, cp)
	list, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprint(settled.Revision), list.ResourceVersion)

	neverEnding(t, cp)
	enough := errors.New("enough")
	later, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, enough)
	defer cancel()
	atOnce, end := context.WithCancelCause(t.Context())
	end(enough)
	for _, ctx := range []context.Context{later, atOnce} {
		_, err = cp.Settle(ctx)
		require.ErrorIs(t, err, enough)
		assert.ErrorContains(t, err, "the control plane has not settled; POST /api/v1/namespaces/default/configmaps is in flight")
	}
}

// neverEnding sends a request whose body does not end, and returns when the
// server reads it. The channel gets the code of the answer.
func neverEnding(t *testing.T, cp *envtest.ControlPlane) <-chan int {
	t.Helper()
	client, err := rest.HTTPClientFor(cp.Config())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	body, rest := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, cp.Config().Host+"/api/v1/namespaces/default/configmaps", body)
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	code := make(chan int, 1)
	go func() {
		defer close(code)
		response, err := client.Do(request)
		if err == nil {
			code <- response.StatusCode
			_ = response.Body.Close()
		}
	}()
	_, err = rest.Write([]byte("{")) // returns when it is read
	require.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		_ = rest.Close()
		for range code { // until it has ended
		}
	})
	return code
}

// Settle that gives up says what is late or held, or else what it saw at the look before.
func TestUnsettled(t *testing.T) {
	enough := errors.New("enough")
	many := []string{"1", "2", "3", "4", "5", "6", "7"}
	held := []fault.Operation{{Point: "cache/pods", Verb: "event"}}
	for want, err := range map[string]error{
		"the control plane has not settled; enough":                                 envtest.Unsettled(nil, nil, nil, enough),
		"the control plane has not settled; late; enough":                           envtest.Unsettled([]string{"late"}, []string{"before"}, nil, enough),
		"the control plane has not settled; a moment before; before; enough":        envtest.Unsettled(nil, []string{"before"}, nil, enough),
		"the control plane has not settled; 1; 2; 3; 4; 5; and 2 more; enough":      envtest.Unsettled(many, nil, nil, enough),
		"the control plane has not settled; held: " + held[0].String() + "; enough": envtest.Unsettled(nil, nil, held, enough),
	} {
		assert.EqualError(t, err, want)
	}
}

// A store that does not stand still is named with who wrote last.
func TestMoved(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		configMaps := configMapsOf(cp.Config())
		createAt(t, configMaps, "moving")
		settle(t, cp)
		_, err := configMaps.Get(t.Context(), "moving", metav1.GetOptions{}) // which moves nothing
		require.NoError(t, err)
		assert.Equal(t, "the store went on from revision 5 to 9, last by create /api/v1/namespaces/default/configmaps of "+envtest.AdminUser, cp.Moved(5, 9))
		assert.Equal(t, "the store was at revision 9, and there was no second look to see whether it stays there", cp.Moved(0, 9))
	})
}

// A bubble that cannot fall idle does not hang: the error names the line.
func TestSettleStuck(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		var mutex sync.Mutex
		mutex.Lock()
		done := make(chan struct{})
		go func() { mutex.Lock(); close(done) }()
		_, err := cp.Settle(t.Context())
		var stuck *virtualtime.StuckError
		require.ErrorAs(t, err, &stuck)
		require.Len(t, stuck.Goroutines, 1)
		assert.Equal(t, "sync.Mutex.Lock", stuck.Goroutines[0].State)
		assert.Contains(t, stuck.Goroutines[0].Func, "TestSettleStuck")
		assert.Contains(t, stuck.Goroutines[0].Line, "settle_test.go:")
		mutex.Unlock()
		<-done
		settle(t, cp)
	})
}

func TestSettleWithoutServers(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		require.NoError(t, cp.Stop(t.Context()))
		_, err := cp.Settle(t.Context())
		assert.ErrorContains(t, err, "no API server runs")
	})
}

// What waits for a step of an order is held, and so is its request; Settle does
// not wait until the order is given up.
func TestSettleWithAnOrder(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		settle(t, cp)
		scheduler, err := cp.Schedule(t.Context(), "store/put resource=configmaps name=default/first", "store/put resource=configmaps name=default/second")
		require.NoError(t, err)
		defer scheduler.Stop()
		configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
		create := func(name string) error {
			_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		}
		created := make(chan error, 1)
		go func() { created <- create("second") }()
		start := time.Now()
		held := settle(t, cp).Held
		require.Len(t, held, 1)
		assert.Equal(t, "store/put", held[0].Point)
		assert.Equal(t, "second", held[0].Name)
		assert.Less(t, time.Since(start), time.Microsecond, "no time passes but that of turns")
		require.NoError(t, create("first"))
		require.NoError(t, <-created)
		assert.Empty(t, settle(t, cp).Held)
		assert.NoError(t, scheduler.Err())
	}, envtest.WithoutLatency())
}
