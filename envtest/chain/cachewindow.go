package chain

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/cacher"
)

// MinCacheWindow is how long watch caches keep events at least; upstream refuses
// less.
const MinCacheWindow = cacher.DefaultEventFreshDuration

// CheckCacheWindows says whether one of Config.CacheWindows is of a resource that
// has no watch cache. One of a group that has none at all may come with a CRD.
func (c *Chain) CheckCacheWindows() error {
	c.rest.mu.Lock()
	defer c.rest.mu.Unlock()
	groups, resources := map[string]bool{}, map[schema.GroupResource]bool{}
	for _, cached := range c.rest.caches {
		groups[cached.name.Group], resources[cached.name] = true, true
	}
	for resource := range c.rest.windows {
		if groups[resource.Group] && !resources[resource] {
			return fmt.Errorf("the window of the watch cache of %s: there is no such resource, or it has no watch cache", resource)
		}
	}
	return nil
}
