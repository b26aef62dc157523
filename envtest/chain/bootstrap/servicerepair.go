package bootstrap

// Works around legacyProvider.PostStartHook (k8s.io/kubernetes/pkg/registry/core/
// rest, storage_core.go). The loops that repair service IPs and node ports have work
// queues and event broadcasters from when they are built, and the hook that runs
// them leaves a goroutine behind that waits for the first success of both, without
// end when there is none. TestServiceRepair notices when upstream changes.

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	genericapiserver "k8s.io/apiserver/pkg/server"
	corerest "k8s.io/kubernetes/pkg/registry/core/rest"
)

// ServiceRepairHook is upstream's name of the hook that runs the repair loops.
const ServiceRepairHook = "start-service-ip-repair-controllers"

// repairLoop is what upstream runs the loops by.
type repairLoop = func(onFirstSuccess func(), stop chan struct{})

// repairLoops are the fields of upstream's provider that hold the loops.
var repairLoops = []string{"startServiceNodePortsRepair", "startServiceClusterIPRepair"}

// ServiceRepair wraps the hook so that it leaves nothing behind: a loop that ends
// before its first success reports one, once the hook has returned and no longer
// listens. With an ended context it only gives back what the loops hold.
func ServiceRepair(hook genericapiserver.PostStartHookFunc) (genericapiserver.PostStartHookFunc, error) {
	provider, err := providerOf(hook)
	if err != nil {
		return nil, err
	}
	returned := make(chan struct{})
	var loops []repairLoop
	for _, name := range repairLoops {
		loop := (*repairLoop)(unsafe.Pointer(provider.FieldByName(name).UnsafeAddr()))
		loops = append(loops, *loop)
		*loop = reporting(*loop, returned)
	}
	return func(ctx genericapiserver.PostStartHookContext) error {
		defer close(returned)
		if ctx.Err() == nil {
			return hook(ctx)
		}
		stop := make(chan struct{})
		close(stop)
		for _, loop := range loops {
			loop(func() {}, stop)
		}
		return nil
	}, nil
}

// reporting has a loop report a first success when the hook is over, at the latest.
func reporting(loop repairLoop, returned <-chan struct{}) repairLoop {
	return func(onFirstSuccess func(), stop chan struct{}) {
		var once sync.Once
		loop(func() { once.Do(onFirstSuccess) }, stop)
		<-returned
		once.Do(onFirstSuccess)
	}
}

// providerOf returns upstream's provider of the core API, which its hook captures:
// it is all that leads to the loops.
func providerOf(hook genericapiserver.PostStartHookFunc) (reflect.Value, error) {
	const name = "k8s.io/kubernetes/pkg/registry/core/rest.(*legacyProvider).PostStartHook.func1"
	if is := runtime.FuncForPC(reflect.ValueOf(hook).Pointer()).Name(); is != name {
		return reflect.Value{}, fmt.Errorf("upstream changed: the hook %s is %s", ServiceRepairHook, is)
	}
	provider := reflect.TypeOf(corerest.New).Out(0).Elem()
	for _, loop := range repairLoops {
		if field, ok := provider.FieldByName(loop); !ok || field.Type != reflect.TypeFor[repairLoop]() {
			return reflect.Value{}, fmt.Errorf("upstream changed: %s has no loop %s any more", provider, loop)
		}
	}
	closure := *(**struct {
		code     uintptr
		provider unsafe.Pointer
	})(unsafe.Pointer(&hook))
	return reflect.NewAt(provider, closure.provider).Elem(), nil
}
