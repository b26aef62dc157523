package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
)

// TestHookNames fails when upstream has no hook of a name any more: the chain
// would then replace none.
func TestHookNames(t *testing.T) {
	rbac, _, err := rbacrest.RESTStorageProvider{}.PostStartHook()
	require.NoError(t, err)
	scheduling, _, err := schedulingrest.RESTStorageProvider{}.PostStartHook()
	require.NoError(t, err)
	hooks := Hooks()
	assert.Len(t, hooks, 2)
	assert.Contains(t, hooks, rbac)
	assert.Contains(t, hooks, scheduling)
}

// TestRoles compares what is written with what upstream's hook writes: to an empty store, and to one
// where somebody writes a role when the store has been looked at.
func TestRoles(t *testing.T) {
	const known = 6
	require.Equal(t, known, reflect.TypeFor[rbacrest.PolicyData]().NumField(), "upstream's policy has other fields")
	there := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "admin"}}
	upstream, empty, taken := fake.NewClientset(), fake.NewClientset(), fake.NewClientset(there)
	lists := 0
	taken.PrependReactor("list", "clusterroles", func(clienttesting.Action) (bool, runtime.Object, error) {
		lists++
		return lists == 1, &rbacv1.ClusterRoleList{}, nil
	})
	for _, ensure := range []func() (bool, error){
		func() (bool, error) { return ensureRBACPolicy(rolePolicy(), upstream) },
		func() (bool, error) { return ensureRoles(t.Context(), empty) },
		func() (bool, error) { return ensureRoles(t.Context(), taken) },
	} {
		done, err := ensure()
		require.NoError(t, err)
		require.True(t, done)
	}
	assert.Equal(t, writes(upstream), writes(empty))
	gets := slices.DeleteFunc(empty.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() != "get" })
	assert.Less(t, len(gets), 40, "it asked for each")
	updated := slices.ContainsFunc(taken.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "update" })
	assert.True(t, updated, "the role that was there is not upstream's")
}

// writes are the objects that a client has written, in the order of their names.
func writes(client *fake.Clientset) []runtime.Object {
	var objects []runtime.Object
	for _, action := range client.Actions() {
		if create, ok := action.(clienttesting.CreateAction); ok {
			objects = append(objects, create.GetObject())
		}
	}
	slices.SortStableFunc(objects, func(a, b runtime.Object) int {
		x, y := a.(metav1.Object), b.(metav1.Object)
		return cmp.Or(cmp.Compare(reflect.TypeOf(a).String(), reflect.TypeOf(b).String()),
			cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
	})
	return objects
}

// TestRolesWithoutStore does nothing before the store answers.
func TestRolesWithoutStore(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no answer")
	})
	done, err := ensureRoles(t.Context(), client)
	assert.NoError(t, err)
	assert.False(t, done)
	assert.Empty(t, writes(client))
}

// TestPriorityClasses meets what may pass, and what does not.
func TestPriorityClasses(t *testing.T) {
	for name, test := range map[string]struct {
		refuse error // what the first create fails with
		done   bool
		err    error
		want   int
	}{
		"at once":     {done: true, want: 2},
		"there":       {refuse: apierrors.NewAlreadyExists(schedulingResource, "x"), done: true, want: 2},
		"unavailable": {refuse: apierrors.NewServiceUnavailable("soon"), want: 1},
		"not ready":   {refuse: notReady, err: notReady, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			client, refuse := fake.NewClientset(), test.refuse
			client.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				now := refuse
				refuse = nil
				return now != nil, nil, now
			})
			done, err := addPriorityClasses(t.Context(), client.SchedulingV1())
			assert.Equal(t, test.done, done)
			assert.Equal(t, test.err, err)
			assert.Len(t, writes(client), test.want)
		})
	}
}

// TestRetry goes through the ways to end, and how long each takes.
func TestRetry(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		try  func(n int) (bool, error)
		stop time.Duration // when the server stops; 0 is never
		err  string
		took time.Duration
	}{
		"at once":           {try: func(int) (bool, error) { return true, nil }},
		"third time":        {try: func(n int) (bool, error) { return n == 3, nil }, took: 15 * time.Millisecond},
		"fails":             {try: func(n int) (bool, error) { return false, fails(n == 2, broken) }, took: 5 * time.Millisecond, err: "broken"},
		"never":             {try: func(int) (bool, error) { return false, nil }, took: 30275 * time.Millisecond, err: "not done within 30s"},
		"stops in a pause":  {try: func(int) (bool, error) { return false, nil }, stop: 3 * time.Second, took: 3 * time.Second},
		"stops while it is": {try: func(int) (bool, error) { time.Sleep(time.Minute); return false, broken }, stop: time.Second, took: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.stop > 0 {
					defer time.AfterFunc(test.stop, cancel).Stop()
				}
				n, began := 0, time.Now()
				err := retry(ctx, func() (bool, error) {
					n++
					return test.try(n)
				})
				if test.err == "" {
					assert.NoError(t, err)
				} else {
					assert.EqualError(t, err, test.err)
				}
				assert.Equal(t, test.took, time.Since(began))
			})
		})
	}
}

func fails(now bool, err error) error {
	if now {
		return err
	}
	return nil
}

var (
	schedulingResource = schedulingv1.Resource("priorityclasses")
	notReady           = apierrors.NewForbidden(schedulingResource, "x", errors.New("not yet ready to handle request"))
)
