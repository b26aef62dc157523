package explore

import (
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

// Interleavings returns the interleavings that a full trace shows, as sorted hashes, each once.
// An interleaving is a pair: of two kinds of events that directly followed each other at one
// resource, or of a client's request or answer and the last step of a server's life before it
// (see lifeStep). Names of objects, revisions and times do not count, so that the number of
// interleavings is bounded and a new one means something.
func Interleavings(records []trace.Record) []uint64 {
	seen := map[uint64]bool{}
	last := map[string]string{} // kind of the last event, by resource
	step := ""                  // the last step of a server's life
	for _, rec := range records {
		if s := lifeStep(rec); s != "" {
			step = s
			continue
		}
		resource, kind, ofClient := labelOf(rec)
		if kind == "" {
			continue
		}
		seen[hash(resource, last[resource], kind)] = true
		last[resource] = kind
		if ofClient {
			seen[hash("life", step, resource, kind)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// lifeStep names an event that changes what a server can do: a lifecycle signal, or the end
// of a hook. It is "" for all other events.
func lifeStep(rec trace.Record) string {
	switch e := rec.Event.(type) {
	case trace.Signal:
		return rec.Server + " signal " + e.Name
	case trace.Hook:
		if e.Phase == trace.End {
			return rec.Server + " hook " + e.Name
		}
	}
	return ""
}

// labelOf returns what an event is about, its kind, and whether it is a client's.
func labelOf(rec trace.Record) (resource, kind string, ofClient bool) {
	switch e := rec.Event.(type) {
	case trace.Turn:
		family, of, _ := strings.Cut(e.Point, "/")
		kind = strings.Join([]string{rec.Server, e.Point, e.Phase, e.Verb}, " ")
		if resource = e.Resource; resource == "" {
			resource = of
			kind = strings.Join([]string{rec.Server, family, e.Phase, e.Verb}, " ")
		}
		ofClient = family == "http" && !strings.HasPrefix(e.Caller, "system:")
	case trace.WatchEvent:
		resource, kind, ofClient = e.Object.Kind, "told "+e.Type, true
	case trace.Answer:
		resource, kind, ofClient = e.About.Kind, "answered "+e.Method+" "+e.Reason, true
	}
	return resource, kind, ofClient
}

func hash(words ...string) uint64 {
	sum := fnv.New64a()
	for _, word := range words {
		_, _ = sum.Write([]byte(word)) // it never fails
		_, _ = sum.Write([]byte{0})
	}
	return sum.Sum64()
}

// Points returns the operations of a full trace without their occurrences, each once,
// in the order in which they first came.
func Points(records []trace.Record) []Point {
	at := map[fault.Operation]int{}
	var points []Point
	for _, rec := range records {
		turn, ok := rec.Event.(trace.Turn)
		if !ok {
			continue
		}
		op := operationOf(turn)
		op.Occurrence = 0
		i, known := at[op]
		if !known {
			i = len(points)
			at[op] = i
			points = append(points, Point{Operation: op})
		}
		points[i].Count++
	}
	return points
}

func operationOf(t trace.Turn) fault.Operation {
	return fault.Operation{
		Point: t.Point, Phase: fault.Phase(t.Phase), Server: t.Server, Verb: t.Verb, Resource: t.Resource,
		Namespace: t.Namespace, Name: t.Name, Key: t.Key, Caller: t.Caller, Occurrence: t.Occurrence,
	}
}

// Acted counts the operations that each rule has acted on, by the text of the rule.
func Acted(records []trace.Record) map[string]int {
	acted := map[string]int{}
	for _, rec := range records {
		if f, ok := rec.Event.(trace.Fault); ok && f.Phase != trace.Released {
			acted[f.Rule]++
		}
	}
	return acted
}

// ActedAt returns the points at which each rule has acted, by the text of the rule, in
// the order of the first time.
func ActedAt(records []trace.Record) map[string][]string {
	points := map[string][]string{}
	for _, rec := range records {
		if f, ok := rec.Event.(trace.Fault); ok && !slices.Contains(points[f.Rule], f.Point) {
			points[f.Rule] = append(points[f.Rule], f.Point)
		}
	}
	return points
}
