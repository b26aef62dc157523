// Package watchfilter is apimachinery's watch.Filter for tests that may leave no goroutine: that one
// blocks for ever when its watch is stopped while an event is on its way.
package watchfilter

import "k8s.io/apimachinery/pkg/watch"

// New passes the events of a watch through keep, which may change them or leave them out.
func New(inner watch.Interface, keep watch.FilterFunc) watch.Interface {
	return stoppable{watch.Filter(inner, keep)}
}

type stoppable struct{ watch.Interface }

// Stop implements watch.Interface. A reflector stops a watch and reads no more of it, so what is
// on its way is taken here.
func (s stoppable) Stop() {
	s.Interface.Stop()
	go func() {
		for range s.ResultChan() {
		}
	}()
}
