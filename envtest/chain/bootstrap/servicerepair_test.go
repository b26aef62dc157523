package bootstrap

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	genericapiserver "k8s.io/apiserver/pkg/server"
	corerest "k8s.io/kubernetes/pkg/registry/core/rest"
)

// TestServiceRepair runs the hook of a provider that has nothing but loops. Neither
// they nor the hook may leave a goroutine behind when the loops never succeed.
func TestServiceRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook, ended := serviceRepair(t)
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		assert.ErrorContains(t, hook(genericapiserver.PostStartHookContext{Context: ctx}), "context cancelled")
		synctest.Wait()
		assert.EqualValues(t, 2, ended.Load())
	})
}

// TestServiceRepairNeverRun ends the loops of a server that does not run its hooks.
func TestServiceRepairNeverRun(t *testing.T) {
	hook, ended := serviceRepair(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, hook(genericapiserver.PostStartHookContext{Context: ctx}))
	assert.EqualValues(t, 2, ended.Load())
}

func TestServiceRepairOfAnotherHook(t *testing.T) {
	_, err := ServiceRepair(roles)
	assert.ErrorContains(t, err, "upstream changed: the hook "+ServiceRepairHook)
}

// serviceRepair returns the hook of upstream's provider, wrapped, with loops that
// wait for their stop, and how many of them have ended.
func serviceRepair(t *testing.T) (genericapiserver.PostStartHookFunc, *atomic.Int32) {
	provider := reflect.New(reflect.TypeOf(corerest.New).Out(0).Elem())
	ended := new(atomic.Int32)
	for _, name := range repairLoops {
		field := provider.Elem().FieldByName(name)
		require.True(t, field.IsValid(), "upstream's provider has no %s any more", name)
		*(*repairLoop)(unsafe.Pointer(field.UnsafeAddr())) = func(_ func(), stop chan struct{}) {
			<-stop
			ended.Add(1)
		}
	}
	name, hook, err := provider.Interface().(genericapiserver.PostStartHookProvider).PostStartHook()
	require.NoError(t, err)
	assert.Equal(t, ServiceRepairHook, name)
	hook, err = ServiceRepair(hook)
	require.NoError(t, err)
	return hook, ended
}
