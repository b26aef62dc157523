package report

import (
	"errors"
	"fmt"
	"time"

	"snowglobe.test/envtest/trace"
)

// synthetic makes a run of n records or a few more, in the proportions of a full trace
// of two servers: mostly turns, then requests, writes and what watches see of them.
func synthetic(n int) []trace.Record {
	var s synthesis
	s.note("# Two servers start, and three clients write and watch.")
	for server := range 2 {
		s.boot(fmt.Sprintf("apiserver-%d", server))
	}
	for round := 0; len(s.recs) < n; round++ {
		if round%40 == 0 {
			s.note(fmt.Sprintf("# Round %d of the clients begins, after a while.", round))
			s.now += time.Duration(round) * 100 * time.Millisecond
		}
		s.change(round)
	}
	return s.recs
}

type synthesis struct {
	recs     []trace.Record
	now      time.Duration
	turns    int
	revision int64
}

func (s *synthesis) add(server string, e trace.Event) {
	s.recs = append(s.recs, trace.Record{Seq: int64(len(s.recs) + 1), Elapsed: s.now, ControlPlane: "server-1", Server: server, Event: e})
}

func (s *synthesis) note(text string) { s.add("", trace.Note{Text: text}) }

// turn lets an operation go on, a little later than the last.
func (s *synthesis) turn(t trace.Turn) {
	s.now += time.Duration(2000 + 1700*(s.turns%7))
	s.turns++
	t.Number, t.Cause, t.Occurrence = s.turns, s.turns-1, 1
	if s.turns%9 == 0 {
		t.Cause = 0
	}
	s.add("", t)
}

func (s *synthesis) boot(server string) {
	s.note("> start " + server)
	for _, stage := range []string{"options", "generic", "kube-apiserver", "aggregator", "run"} {
		s.turn(trace.Turn{Point: "stage/" + stage, Phase: "before", Server: server})
		s.add(server, trace.Stage{Name: stage, Phase: trace.Start})
		s.add(server, trace.Stage{Name: stage, Phase: trace.End})
	}
	hook := func(i int, p trace.Phase) trace.Hook {
		return trace.Hook{Kind: trace.PostStart, Name: fmt.Sprintf("start-controller-%d", i), Phase: p}
	}
	for i := range 30 {
		s.turn(trace.Turn{Point: "hook/" + hook(i, "").Name, Phase: "before", Verb: "post-start", Server: server})
		s.add(server, hook(i, trace.Start))
		s.add(server, trace.Check{Endpoint: "readyz", Name: "poststarthook/" + hook(i, "").Name, Reason: "not finished"})
	}
	for i := range 30 {
		s.turn(trace.Turn{Point: "informer/resource-" + fmt.Sprint(i), Phase: "before", Verb: "list", Server: server})
		s.add(server, hook(i, trace.End))
		s.add(server, trace.Check{Endpoint: "readyz", Name: "poststarthook/" + hook(i, "").Name, OK: true, Reason: "ok"})
	}
	s.now += time.Second
	s.add(server, trace.Signal{Name: "HasBeenReady"})
}

// change is a client's write, what it leads to in the server, and what a watch sees.
func (s *synthesis) change(round int) {
	server, client := fmt.Sprintf("apiserver-%d", round%2), fmt.Sprintf("client-%d", round%3)
	name := fmt.Sprintf("object-%d", round%50)
	uri := "/api/v1/namespaces/default/configmaps/" + name + "?fieldManager=test"
	key := "/registry/configmaps/default/" + name
	operation := trace.Turn{Phase: "before", Server: server, Resource: "configmaps", Namespace: "default", Name: name, Key: key, Caller: client}
	began := s.now
	for _, point := range []string{"http/update", "store/range", "store/put"} {
		operation.Point = point
		s.turn(operation)
	}
	s.revision++
	s.add("", trace.Write{Key: key, Revision: s.revision, Created: round < 50})
	object := trace.Object{Kind: "ConfigMap", Namespace: "default", Name: name, Revision: s.revision, Digest: fmt.Sprintf("%08x", round*2654435761)}
	operation.Point, operation.Phase = "http/update", "after"
	s.turn(operation)
	request := trace.Request{Method: "PUT", URI: uri, Verb: "update", User: client, UserAgent: "test", Phase: trace.End, Code: 200, Server: "kube-apiserver", Duration: s.now - began}
	if round%31 == 0 {
		request.Code, request.Err = 0, errors.New("connection reset")
	}
	s.add(server, request)
	s.add("", trace.Answer{Client: client, Method: "PUT", URI: uri, Code: request.Code, Objects: []trace.Object{object}, Err: request.Err})
	fault := trace.Fault{Phase: trace.Held, Action: "delay", Rule: "delay cache/configmaps by=1ms", Point: "cache/configmaps", Server: server, Verb: "event", Name: name, Occurrence: round}
	if round%5 == 0 {
		s.add("", fault)
	}
	s.turn(trace.Turn{Point: "cache/configmaps", Phase: "before", Verb: "event", Server: server, Namespace: "default", Name: name})
	if round%5 == 0 {
		fault.Phase = trace.Released
		s.add("", fault)
	}
	s.add("", trace.WatchEvent{Client: "watcher", URI: "/api/v1/configmaps?watch=true", Watch: 1, Type: "MODIFIED", Object: object})
	s.add(server, trace.Request{Method: "GET", URI: "/apis/example.com/v1/things/" + name, Verb: "get", User: "system:apiserver", UserAgent: "loopback", Phase: trace.End, Code: 404, Server: "not-found"})
}
