package bootstrap

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	genericapiserver "k8s.io/apiserver/pkg/server"
	corerest "k8s.io/kubernetes/pkg/registry/core/rest"
)

// TestServiceRepair ends the loops of a provider that has nothing else.
func TestServiceRepair(t *testing.T) {
	provider := reflect.New(reflect.TypeOf(corerest.New).Out(0).Elem())
	ended := 0
	for _, name := range repairLoops {
		field := provider.Elem().FieldByName(name)
		require.True(t, field.IsValid(), "upstream's provider has no %s any more", name)
		*(*repairLoop)(unsafe.Pointer(field.UnsafeAddr())) = func(_ func(), stop chan struct{}) {
			<-stop
			ended++
		}
	}
	name, hook, err := provider.Interface().(genericapiserver.PostStartHookProvider).PostStartHook()
	require.NoError(t, err)
	assert.Equal(t, ServiceRepairHook, name)
	require.NoError(t, EndServiceRepair(hook))
	assert.Equal(t, 2, ended)
	assert.ErrorContains(t, EndServiceRepair(roles), "upstream changed: the hook "+ServiceRepairHook)
}
