package load

import (
	"cmp"
	"time"

	"snowglobe.test/bench/measure"
)

// What a load has run on, as Result.Transport says, beside clusters.
const (
	TransportProcess = "process" // a control plane of ours: function calls in the process, no connection
	TransportTLS     = "tls"     // the same: HTTP/2 over TLS on loopback, a connection for each watcher
	Stock            = "stock"   // kube-apiserver and etcd, over TLS
	BaselineStore    = "store"   // the watch of the store, by an etcd client in the process
	BaselineCacher   = "cacher"  // upstream's watch cache on that store
	BaselineHTTP2    = "http2"   // a bare Go server that writes the same bytes over TLS
)

// Result is one load and its result.
type Result struct {
	Transport string `json:"transport"` // one of those above, or the name of a cluster
	Round     int    `json:"round"`     // counted from 1
	Shape

	RateAsked float64 `json:"rateAsked"` // events/s
	Rate      float64 `json:"rate"`      // events/s that the writers reached
	Events    int     `json:"events"`

	// Deliveries is how many events the watchers got, each counted once per watcher. Laggards are left out.
	Deliveries          int     `json:"deliveries"`
	DeliveriesPerSecond float64 `json:"deliveriesPerSecond"`
	// Latency is from when an event was due to be written until a watcher has read it.
	Latency measure.Latency `json:"latency"`
	// OpenLatency is how long it took to open a watch, with all objects that were there if Initial
	// says so.
	OpenLatency measure.Latency `json:"openLatency"`
	// WriteLatency is from the same moment until the writer has the answer.
	WriteLatency measure.Latency `json:"writeLatency"`

	Lost       int `json:"lost"`
	Duplicates int `json:"duplicates"`
	Reordered  int `json:"reordered"`
	Foreign    int `json:"foreign"`  // events that watchers got and had not selected
	Restarts   int `json:"restarts"` // watches that the server ended early
	// TimedOut says that some events had not come when the load had waited for its drain time.
	TimedOut bool `json:"timedOut"`
	// Laggards are in no other number but those of the server; nil if there are none.
	Laggards *Laggards `json:"laggards,omitempty"`

	// Server is what the process of the API server used; nil if that is not known, because it is
	// one whose metrics the user may not read.
	Server *measure.Usage `json:"server,omitempty"`
	// Stages are those of the way of an event, measured in another run of the load; nil if they
	// were not asked for, or the server is not ours.
	Stages []Stage `json:"stages,omitempty"`

	// Sampled are the events of the first object that the first watcher has got.
	Sampled []SampledEvent `json:"-"`
}

// Laggards are the watchers of a load that were slow or stalled. When the others have all events,
// these read on as fast as they can, so that it is known what the server has kept for them.
type Laggards struct {
	Slow       int `json:"slow"`
	Stalled    int `json:"stalled"`
	Deliveries int `json:"deliveries"`
	// Terminations is how many of their watches the server ended. They go on from their last event.
	Terminations int `json:"terminations"`
	// Expired is how many could not go on, because the watch cache did not have the next event any more.
	Expired int `json:"expired"`
}

// Stage is how long events took from one point of their way to the next.
type Stage struct {
	Name    string          `json:"name"`
	Latency measure.Latency `json:"latency"`
}

// SampledEvent is an event of the first object that the first watcher has got.
type SampledEvent struct{ Due, Arrived time.Time }

// sum returns the result of the load; written is for how long its events were written.
func (l *Load) sum(transport string, written time.Duration) *Result {
	r := &Result{
		Transport: transport, Shape: l.Options.Shape, OpenLatency: l.opening.Sum(),
		RateAsked: l.Options.Rate, Rate: float64(l.events) / written.Seconds(), Events: l.events,
		Latency: l.delivery.Sum(), WriteLatency: l.writing.Sum(), TimedOut: l.timedOut,
	}
	r.Sampled = l.watchers[0].sampled
	var newest time.Duration
	for _, w := range l.watchers {
		r.Duplicates += w.tally.duplicates
		r.Reordered += w.tally.reordered
		r.Foreign += w.tally.foreign
		if w.pace != paceFull {
			r.Laggards = cmp.Or(r.Laggards, &Laggards{})
			r.Laggards.add(w)
			continue
		}
		r.Deliveries += w.tally.seen
		r.Lost += w.tally.lost()
		r.Restarts += w.restarts
		newest = max(newest, w.newest)
	}
	if took := newest - l.warm; newest > 0 {
		r.DeliveriesPerSecond = float64(r.Deliveries) / took.Seconds()
	}
	return r
}

// add counts a watcher that is a laggard.
func (l *Laggards) add(w *watcher) {
	if w.pace == paceSlow {
		l.Slow++
	} else {
		l.Stalled++
	}
	l.Deliveries += w.tally.seen
	l.Terminations += w.restarts
	if w.expired {
		l.Expired++
	}
}

// Saturated reports whether the load was more than the machine could take.
func (l Result) Saturated() bool {
	return l.DeliveriesPerSecond < 0.95*l.RateAsked*float64(l.prompt())/float64(l.Groups())
}

// AllDeliveries is Deliveries and those to laggards.
func (l Result) AllDeliveries() int {
	if l.Laggards == nil {
		return l.Deliveries
	}
	return l.Deliveries + l.Laggards.Deliveries
}

// prompt is how many watchers are no laggards.
func (l Result) prompt() int {
	if l.Laggards == nil {
		return l.Watchers
	}
	return l.Watchers - l.Laggards.Slow - l.Laggards.Stalled
}
