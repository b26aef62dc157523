package checkers

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// steps are operations one after another, each with the object that it is answered with.
type steps []Operation

const (
	pods = "/api/v1/namespaces/default/pods"
	pod  = pods + "/x"
)

func podAt(revision int64, change ...func(*Object)) []Object {
	o := Object{Kind: "Pod", Namespace: "default", Name: "x", UID: "u1", Revision: revision}
	for _, f := range change {
		f(&o)
	}
	return []Object{o}
}

func deleting(o *Object)  { o.Deleting = true }
func finalized(o *Object) { o.Finalizers = "example.com/f" }
func reborn(o *Object)    { o.UID = "u2" }
func scale(o *Object)     { o.Kind = "Scale" }
func missing() Operation {
	return Operation{Method: "GET", URI: pod, Code: 404, About: Object{Kind: "pods", Name: "x"}}
}
func lost(op Operation) Operation {
	op.Code, op.Objects, op.Err = 0, nil, "timeout"
	return op
}

func call(method, uri string, code int, objects []Object) Operation {
	return Operation{Method: method, URI: uri, Code: code, Objects: objects}
}

// requiring makes a request require a revision.
func requiring(revision int64, op Operation) Operation {
	op.Sent.Revision = revision
	return op
}

// TestSequences judges what one client is told, one request after another, in a
// history that is closed.
func TestSequences(t *testing.T) {
	made := call("POST", pods, 201, podAt(5))
	read := func(revision int64) Operation { return call("GET", pod, 200, podAt(revision)) }
	removed := Operation{Method: "DELETE", URI: pod, Code: 200, About: Object{Kind: "pods", Name: "x", UID: "u1"}}
	for name, test := range map[string]struct {
		ops  steps
		want Verdict
	}{
		"an update may change nothing":                 {steps{made, call("PUT", pod, 200, podAt(5)), read(5)}, Holds},
		"an update that requires the last revision":    {steps{made, requiring(5, call("PUT", pod, 200, podAt(6))), read(6)}, Holds},
		"an update that requires another one":          {steps{made, requiring(4, call("PUT", pod, 200, podAt(6)))}, Broken},
		"revisions grow":                               {steps{made, call("PUT", pod, 200, podAt(4))}, Broken},
		"a PUT that creates":                           {steps{missing(), call("PUT", pod, 201, podAt(5)), read(5)}, Holds},
		"a PUT that creates what is there":             {steps{made, call("PUT", pod, 201, podAt(6))}, Broken},
		"an update of nothing":                         {steps{missing(), call("PUT", pod, 200, podAt(6))}, Broken},
		"an update of the scale":                       {steps{made, call("PUT", pod+"/scale", 200, podAt(6, scale)), read(6)}, Holds},
		"an update of the status that is not seen":     {steps{made, call("PUT", pod+"/status", 200, podAt(6)), read(5)}, Broken},
		"a dry run does nothing":                       {steps{made, {Method: "PUT", URI: pod + "?dryRun=All", Code: 200, Objects: podAt(9)}, read(5)}, Holds},
		"a deletion":                                   {steps{made, removed, missing()}, Holds},
		"a deletion twice":                             {steps{made, removed, removed}, Broken},
		"a deletion that waits for finalizers":         {steps{made, call("DELETE", pod, 200, podAt(6, deleting, finalized)), read(6)}, Holds},
		"a deletion that waits for finalizers, gone":   {steps{made, call("DELETE", pod, 200, podAt(6, deleting, finalized)), missing()}, Broken},
		"a graceful deletion that waits":               {steps{made, call("DELETE", pod, 200, podAt(6, deleting)), read(6)}, Holds},
		"a graceful deletion at once":                  {steps{made, call("DELETE", pod, 200, podAt(7, deleting)), missing()}, Holds},
		"a deletion that returns what it has removed":  {steps{made, call("DELETE", pod, 200, podAt(6)), missing()}, Holds},
		"a deletion that returns it, and it is there":  {steps{made, call("DELETE", pod, 200, podAt(6)), read(6)}, Broken},
		"the last finalizer goes, and so does it":      {steps{made, call("PATCH", pod, 200, podAt(5, deleting)), missing()}, Holds},
		"a name is used again":                         {steps{made, removed, call("POST", pods, 201, podAt(9, reborn)), call("GET", pod, 200, podAt(9, reborn))}, Holds},
		"a new object under the revisions of the old":  {steps{made, removed, call("POST", pods, 201, podAt(5, reborn))}, Broken},
		"another object without a creation":            {steps{made, call("GET", pod, 200, podAt(6, reborn))}, Broken},
		"a collection is deleted":                      {steps{made, call("DELETE", pods, 200, podAt(5)), missing()}, Holds},
		"another collection is deleted":                {steps{made, call("DELETE", "/api/v1/namespaces/other/pods", 200, nil), missing()}, Broken},
		"a lost creation by a name of the server's":    {steps{missing(), lost(call("POST", pods, 201, nil)), read(5)}, Holds},
		"an eviction":                                  {steps{made, call("POST", pod+"/eviction", 201, nil), missing()}, Holds},
		"a lost deletion explains one removal":         {steps{made, lost(removed), missing()}, Holds},
		"a lost update explains one change":            {steps{made, lost(call("PUT", pod, 200, nil)), read(6)}, Holds},
		"a lost update explains no two":                {steps{made, lost(call("PUT", pod, 200, nil)), read(6), read(7)}, Broken},
		"a lost update that requires another revision": {steps{made, lost(requiring(4, call("PUT", pod, 200, nil))), read(6)}, Broken},
		"429 has done nothing":                         {steps{made, call("PUT", pod, 429, nil), read(6)}, Broken},
		"503 may have":                                 {steps{made, call("PUT", pod, 503, nil), read(6)}, Holds},
		"a list shows it":                              {steps{made, {Method: "GET", URI: pods, Code: 200, Revision: 5, Objects: podAt(5)}}, Holds},
		"a list leaves it out":                         {steps{made, {Method: "GET", URI: pods, Code: 200, Revision: 5}}, Broken},
		"a list leaves it for the next page":           {steps{made, {Method: "GET", URI: pods + "?limit=1", Code: 200, Revision: 5, Continue: "token"}}, Holds},
		"a list does not select it":                    {steps{made, {Method: "GET", URI: pods + "?labelSelector=app", Code: 200, Revision: 5}}, Holds},
		"a list of another namespace":                  {steps{made, {Method: "GET", URI: "/api/v1/namespaces/other/pods", Code: 200, Revision: 5}}, Holds},
		"a list from a cache":                          {steps{made, {Method: "GET", URI: pods + "?resourceVersion=0", Code: 200, Revision: 4}}, Holds},
		"a get from a cache":                           {steps{made, call("PUT", pod, 200, podAt(6)), call("GET", pod+"?resourceVersion=0", 200, podAt(5))}, Holds},
		"404 of something else":                        {steps{made, {Method: "GET", URI: pod, Code: 404}}, Holds},
		"409 of something else":                        {steps{made, {Method: "PUT", URI: pod, Code: 409, Reason: "Conflict", Sent: Object{Revision: 5}, About: Object{Name: "quota"}}, requiring(5, call("PUT", pod, 200, podAt(6)))}, Holds},
	} {
		h := &History{Closed: true}
		for i, op := range test.ops {
			op.Session, op.Start, op.End = "a", int64(i), int64(i+1)
			if op.Method == "POST" && op.Err == "" {
				op.Sent.Name = "x"
			}
			h.Operations = append(h.Operations, op)
		}
		result := Linearizability{}.Check(t.Context(), h)
		assert.Equal(t, test.want, result.Verdict(), "%s: %v", name, result.Findings)
	}
}
