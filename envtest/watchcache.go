package envtest

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"snowglobe.test/envtest/fault"
)

// heldCaches are the rules of HoldWatchCache. The zero value is none.
type heldCaches struct {
	mu    sync.Mutex
	rules map[schema.GroupResource]*fault.Entry
}

// HoldWatchCache keeps the server's watch cache of a resource behind the store;
// see ControlPlane.HoldWatchCache. It is the rule
// "freeze cache/RESOURCE server=NAME optional".
func (s *Server) HoldWatchCache(resource schema.GroupResource) error {
	s.heldCaches.mu.Lock()
	defer s.heldCaches.mu.Unlock()
	if s.heldCaches.rules[resource] != nil {
		return fmt.Errorf("watch events of %s are held already", resource)
	}
	freeze := fault.Rule{
		Action: fault.Action{Kind: fault.Freeze}, Match: fault.Match{Point: "cache/" + resource.String(), Server: s.name}, Optional: true,
	}
	added, err := s.cp.faults.Add(freeze)
	if err != nil {
		return fmt.Errorf("hold the watch cache of %s: %w", resource, err)
	}
	if s.heldCaches.rules == nil {
		s.heldCaches.rules = map[schema.GroupResource]*fault.Entry{}
	}
	s.heldCaches.rules[resource] = added[0]
	return nil
}

// ReleaseWatchCache lets the server's watch cache of a resource catch up.
func (s *Server) ReleaseWatchCache(resource schema.GroupResource) error {
	s.heldCaches.mu.Lock()
	defer s.heldCaches.mu.Unlock()
	held := s.heldCaches.rules[resource]
	if held == nil {
		return fmt.Errorf("watch events of %s are not held", resource)
	}
	delete(s.heldCaches.rules, resource)
	held.Remove()
	return nil
}
