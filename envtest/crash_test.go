package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/internal/sample"
)

// ends are the two ways to end a process. A panic is one that upstream has caught.
var ends = map[string]func(){
	"fatal": func() { klog.Fatal("the end") },
	"panic": func() {
		defer utilruntime.HandleCrash()
		panic("the end")
	},
}

// mine is a scheduler of faults that goes off under the first operation of a kind:
// code of the test, in the goroutine of the server that is about to do it.
type mine struct {
	point, resource string
	goOff           func()
	once            sync.Once
}

// Arrive implements fault.Scheduler. It lets everything go on at once.
func (m *mine) Arrive(op fault.Operation, _ time.Duration, release func()) {
	release()
	if op.Point == m.point && op.Resource == m.resource {
		m.once.Do(m.goOff)
	}
}

// Leave implements fault.Scheduler.
func (*mine) Leave(fault.Operation) {}

func (*mine) Reseed(uint64) {}

// crashPlace is where a test ends the process: under the first operation at a point.
type crashPlace struct {
	name            string
	point, resource string
	background      bool // in a goroutine that the hook or the request starts
	panicGoesOn     bool // as upstream recovers from it
}

// TestCrashOfTheRightOne ends the process of one of two control planes, in all kinds
// of its goroutines. It is in virtual time, because a server that crashes during its
// boot has some seconds to end it.
func TestCrashOfTheRightOne(t *testing.T) {
	const create, configMaps = "http/create", "configmaps"
	places := []crashPlace{
		{name: "a hook", point: "hook/" + crdHook},
		{name: "a background goroutine", point: "hook/" + crdHook, background: true},
		{name: "a request", point: create, resource: configMaps, panicGoesOn: true},
		{name: "a background goroutine that a request has started", point: create, resource: configMaps, background: true},
	}
	synctest.Test(t, func(t *testing.T) {
		other := envtest.Start(t)
		for i, place := range places {
			if !sample.Has(i, len(places)-1) {
				continue // the gate looks at the first and the last
			}
			for how := range ends {
				assert.NoError(t, crashIn(t, place, how), "%s in %s", how, place.name)
				assert.True(t, ready(t, other), "after %s in %s the other control plane is not ready", how, place.name)
				assert.NoError(t, other.Err(), "after %s in %s the other control plane", how, place.name)
			}
		}
	})
}

// crashIn starts a control plane, ends its process in one place, and says what is
// wrong with what comes of it.
func crashIn(t *testing.T, place crashPlace, how string) error {
	cp, err := envtest.Launch(t.Context(), envtest.WithFaults("hold hook/"+crdHook))
	if err != nil {
		return err
	}
	goOff := ends[how]
	if place.background {
		goOff = func() { go ends[how]() }
	}
	cp.Faults().Schedule(&mine{point: place.point, resource: place.resource, goOff: goOff})
	if err := cp.Faults().Release("hook/" + crdHook); err != nil {
		return errors.Join(err, cp.Stop(t.Context()))
	}
	_, answer := configMapsOf(cp.Config()).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "last"}}, metav1.CreateOptions{})
	if place.resource != "" && !place.background && !errors.Is(answer, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the client's connection has not been broken; its error is %w", answer)
	}
	if how == "panic" && place.panicGoesOn {
		return errors.Join(err, cp.WaitReady(t.Context()), cp.Err(), cp.Stop(t.Context()))
	}
	select {
	case <-cp.Crashed():
		if text := cp.Err().Error(); !strings.Contains(text, "the end") || !strings.Contains(text, "crash_test.go") || !strings.Contains(cp.Log(), "the end") {
			err = errors.Join(err, fmt.Errorf("the crash does not say why or where: %w", cp.Err()))
		}
	case <-time.After(time.Minute):
		err = errors.Join(err, errors.New("no crash"))
	}
	return errors.Join(err, cp.Stop(t.Context()))
}

// TestCrashOfAStranger ends the process in a goroutine of the program beside a
// control plane. It goes the way it went before.
func TestCrashOfAStranger(t *testing.T) {
	exit := klog.OsExit
	defer func() { klog.OsExit = exit }()
	exited := 0
	klog.OsExit = func(code int) {
		exited = code
		runtime.Goexit()
	}
	cp, err := envtest.Launch(t.Context())
	require.NoError(t, err)
	panicked := map[string]any{}
	for how, end := range ends {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { panicked[how] = recover() }()
			end()
		}()
		<-ended
	}
	assert.True(t, exited == 255 && panicked["fatal"] == nil, "the fatal log line has exited with %d, and panicked with %v", exited, panicked["fatal"])
	assert.Equal(t, "the end", panicked["panic"], "what the panic has gone on as")
	assert.True(t, ready(t, cp), "the control plane is not ready")
	assert.NoError(t, cp.Err())
	assert.NotContains(t, cp.Log(), "the end", "the control plane has a stranger's log")
	assert.NoError(t, cp.Stop(t.Context()))
}

// TestCrashOfAnAssembly ends the process while a server is assembled. Launch returns,
// and leaves nothing behind.
func TestCrashOfAnAssembly(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			store := &brokenStore{Backend: memory.New("broken"), connect: func() error {
				end()
				return errBroken
			}}
			launched := make(chan error, 1)
			go func() {
				defer close(launched)
				_, err := envtest.Launch(context.WithoutCancel(t.Context()), envtest.WithStore(store))
				launched <- err
			}()
			err, returned := <-launched
			require.True(t, returned, "the goroutine has ended that called Launch")
			assert.True(t, err != nil && strings.Contains(err.Error(), "the end") && !strings.Contains(err.Error(), "have not ended"), "Launch: %v", err)
			assert.Equal(t, []string{"Start", "Client", "Stop"}, store.called)
		})
	}
}

// neverStop is what upstream has made.
var neverStop = wait.NeverStop

// TestStrangersInformer runs an informer of the program until wait.NeverStop, begun
// while a control plane starts. It lives on when that has stopped.
func TestStrangersInformer(t *testing.T) {
	client := fake.NewClientset()
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps().Informer()
	seen := make(chan string, 1)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { seen <- object.(*corev1.ConfigMap).Name },
	})
	require.NoError(t, err)
	done := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for wait.NeverStop == neverStop {
			select {
			case <-done:
				return
			default:
				runtime.Gosched()
			}
		}
		t.Error("wait.NeverStop is another channel while there is a control plane")
	})
	cp, err := envtest.Launch(t.Context())
	require.NoError(t, err)
	go informer.Run(wait.NeverStop) // for ever, as it says
	assert.NoError(t, cp.Stop(t.Context()))
	close(done)
	looking.Wait()
	_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "later"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	select {
	case name := <-seen:
		assert.Equal(t, "later", name, "what the informer has seen")
	case <-time.After(time.Minute):
		t.Error("the informer sees nothing any more")
	}
}
