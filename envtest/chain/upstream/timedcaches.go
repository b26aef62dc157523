package upstream

// Works around the caches in which upstream keeps answers for some time: the LimitRanges of a
// namespace for 30 seconds, who a webhook says that a token is for two minutes. They outlast a
// restore of the store, and nothing empties them. TestTimedCaches has them all by name, and
// TestUpstreamCaches notices a new one in upstream's source.

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/admission"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/utils/lru"
)

// TimedCaches are those of the admission plugins, authenticators and authorizers of one chain, and of
// its filters. The zero value is ready.
type TimedCaches struct {
	roots   map[string]any
	empties map[string]func() // by where the cache is, such as "LimitRanger.liveLookupCache"
	sources []reflect.Value   // of policies, which are among the caches
	filters []*renewable
	seen    map[seenValue]bool
}

type seenValue struct {
	at uintptr
	of reflect.Type
}

// Decorate is an admission.DecoratorFunc that changes nothing: it takes note of a plugin, which has
// most of its fields only later.
func (c *TimedCaches) Decorate(plugin admission.Interface, name string) admission.Interface {
	c.Add(name, plugin)
	return plugin
}

// Add adds what may have caches, with its name.
func (c *TimedCaches) Add(name string, root any) {
	if c.roots == nil {
		c.roots = map[string]any{}
	}
	c.roots[name] = root
}

// HandlerChain makes the handler chain that build does, and again in Empty: the filter of
// impersonations keeps for ten seconds what it has allowed, and cannot be reached.
func (c *TimedCaches) HandlerChain(
	build func(http.Handler, *genericapiserver.Config) http.Handler,
) func(http.Handler, *genericapiserver.Config) http.Handler {
	return func(api http.Handler, config *genericapiserver.Config) http.Handler {
		filters := &renewable{build: func() http.Handler { return build(api, config) }}
		filters.renew()
		c.filters = append(c.filters, filters)
		return filters
	}
}

// renewable is a handler that can be built anew.
type renewable struct {
	build   func() http.Handler
	current atomic.Pointer[http.Handler]
}

func (r *renewable) renew() {
	handler := r.build()
	r.current.Store(&handler)
}

// ServeHTTP implements http.Handler.
func (r *renewable) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	(*r.current.Load()).ServeHTTP(w, req)
}

// Find finds the caches in what was added. Nothing may be using them yet.
func (c *TimedCaches) Find() {
	c.empties, c.seen = map[string]func(){}, map[seenValue]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.roots)) {
		c.look(name, reflect.ValueOf(c.roots[name]))
	}
	c.roots, c.seen = nil, nil
}

// BeginPolicies lets requests be admitted once the informers of policies have synced and there are
// none. Otherwise upstream looks by itself, up to 100 ms later.
func (c *TimedCaches) BeginPolicies() {
	for _, source := range c.sources {
		beginPolicies(source)
	}
}

// Names says where the caches are.
func (c *TimedCaches) Names() []string { return slices.Sorted(maps.Keys(c.empties)) }

// Empty empties all of them.
func (c *TimedCaches) Empty() {
	for _, empty := range c.empties {
		empty()
	}
	for _, filters := range c.filters {
		filters.renew()
	}
}

// look finds the caches in a value. It does not look into what other libraries have made, such as
// clients and informers.
func (c *TimedCaches) look(at string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		c.look(at, v.Elem())
	case reflect.Pointer:
		value := seenValue{v.Pointer(), v.Type()}
		if v.IsNil() || c.seen[value] {
			return
		}
		c.seen[value] = true
		if isPolicySource(v.Type().Elem()) {
			source := reflect.NewAt(v.Type().Elem(), v.UnsafePointer())
			c.sources = append(c.sources, source)
			c.empties[at] = func() { forgetPolicies(source) }
		} else if empty := emptierOf(v); empty != nil {
			c.empties[at] = empty
		} else {
			c.look(at, v.Elem())
		}
	case reflect.Struct:
		c.lookInStruct(at, v)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			c.look(fmt.Sprintf("%s[%d]", at, i), v.Index(i))
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			c.look(fmt.Sprintf("%s[%v]", at, key), value)
		}
	}
}

func (c *TimedCaches) lookInStruct(at string, v reflect.Value) {
	t := v.Type()
	if t.PkgPath() == "sync/atomic" && strings.HasPrefix(t.Name(), "Pointer[") {
		pointee := t.Field(0).Type.Elem() // its first field is a [0]*T
		c.look(at, reflect.NewAt(pointee.Elem(), v.FieldByName("v").UnsafePointer()))
		return
	}
	if !slices.ContainsFunc(searched, func(prefix string) bool { return strings.HasPrefix(t.PkgPath(), prefix) }) {
		return
	}
	for i := range v.NumField() {
		c.look(at+"."+t.Field(i).Name, v.Field(i))
	}
}

// searched are the packages whose values may have caches; those of struct types without a name have
// none.
var searched = []string{"k8s.io/apiserver/", "k8s.io/kubernetes/", "snowglobe.test/"}

// emptierOf returns what empties a cache; nil if the pointer is to something else.
func emptierOf(v reflect.Value) func() {
	switch v.Type() {
	case reflect.TypeFor[*lru.Cache]():
		return (*lru.Cache)(v.UnsafePointer()).Clear
	case reflect.TypeFor[*utilcache.LRUExpireCache]():
		cache := (*utilcache.LRUExpireCache)(v.UnsafePointer())
		return func() { cache.RemoveAll(func(any) bool { return true }) }
	case reflect.TypeFor[*utilcache.Expiring]():
		cache := (*utilcache.Expiring)(v.UnsafePointer())
		return func() { emptyExpiring(cache) }
	}
	return nil
}

// emptyExpiring empties a cache that does not list its keys.
func emptyExpiring(cache *utilcache.Expiring) {
	mu, err := unexported[sync.RWMutex](cache, "mu")
	if err != nil {
		return // TestTimedCaches fails then
	}
	content := reflect.ValueOf(cache).Elem().FieldByName("cache")
	content = reflect.NewAt(content.Type(), content.Addr().UnsafePointer()).Elem() // it is not exported
	mu.RLock()
	keys := content.MapKeys()
	mu.RUnlock()
	for _, key := range keys {
		cache.Delete(key.Interface())
	}
}
