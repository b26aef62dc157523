package bootstrap

// Works around legacyProvider.PostStartHook (k8s.io/kubernetes/pkg/registry/core/
// rest, storage_core.go). The loops that repair service IPs and node ports have work
// queues and event broadcasters from when they are built, and the hook that runs
// them leaves a goroutine behind that waits for the first success of both, without
// end when there is none. TestServiceRepair notices when upstream changes.

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	genericapiserver "k8s.io/apiserver/pkg/server"
	api "k8s.io/kubernetes/pkg/apis/core"
	corerest "k8s.io/kubernetes/pkg/registry/core/rest"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
)

// ServiceRepairHook is upstream's name of the hook that runs the repair loops.
const ServiceRepairHook = "start-service-ip-repair-controllers"

// repairLoop is what upstream runs the loops by.
type repairLoop = func(onFirstSuccess func(), stop chan struct{})

// allocatorsField is the field of upstream's provider that holds the allocators of service IPs.
const allocatorsField = "serviceClusterIPAllocators"

type allocatorsByFamily = map[api.IPFamily]ipallocator.Interface

// repairLoops are the fields of upstream's provider that hold the loops.
var repairLoops = []string{"startServiceNodePortsRepair", "startServiceClusterIPRepair"}

// syncAllocators has an allocator of service IPs know the ranges of its informer.
//
//go:linkname syncAllocators k8s.io/kubernetes/pkg/registry/core/service/ipallocator.(*MetaAllocator).syncAllocators
func syncAllocators(allocator *ipallocator.MetaAllocator) error

// ServiceRepair wraps the hook so that it leaves nothing behind: a loop that ends
// before its first success reports one, once the hook has returned and no longer
// listens. With an ended context it only gives back what the loops hold.
//
// When it returns, Services can be created. Upstream's allocators look every 100 ms whether
// there are ranges yet, and until then say that they are full.
func ServiceRepair(hook genericapiserver.PostStartHookFunc) (genericapiserver.PostStartHookFunc, error) {
	provider, err := providerOf(hook)
	if err != nil {
		return nil, err
	}
	allocators := *(*allocatorsByFamily)(unsafe.Pointer(provider.FieldByName(allocatorsField).UnsafeAddr()))
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
			return errors.Join(hook(ctx), syncAll(allocators))
		}
		stop := make(chan struct{})
		close(stop)
		for _, loop := range loops {
			loop(func() {}, stop)
		}
		return nil
	}, nil
}

func syncAll(allocators allocatorsByFamily) error {
	var errs []error
	for _, allocator := range allocators {
		if meta, ok := allocator.(*ipallocator.MetaAllocator); ok {
			errs = append(errs, syncAllocators(meta))
		}
	}
	return errors.Join(errs...)
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
	if field, ok := provider.FieldByName(allocatorsField); !ok || field.Type != reflect.TypeFor[allocatorsByFamily]() {
		return reflect.Value{}, fmt.Errorf("upstream changed: %s has no %s any more", provider, allocatorsField)
	}
	closure := *(**struct {
		code     uintptr
		provider unsafe.Pointer
	})(unsafe.Pointer(&hook))
	return reflect.NewAt(provider, closure.provider).Elem(), nil
}
