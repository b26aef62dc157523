package checkers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"snowglobe.test/scenarios/checkers"
)

// A history may be written by hand: two updates that require one revision can't both
// succeed.
func ExampleCheck() {
	h, err := checkers.Read(strings.NewReader(`
{"type":"operation","session":"a","method":"PUT","uri":"/api/v1/namespaces/default/configmaps/snow","start":1,"end":3,"sent":{"revision":5},"code":200,"objects":[{"namespace":"default","name":"snow","revision":6}]}
{"type":"operation","session":"b","method":"PUT","uri":"/api/v1/namespaces/default/configmaps/snow","start":2,"end":4,"sent":{"revision":5},"code":200,"objects":[{"namespace":"default","name":"snow","revision":7}]}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(checkers.Check(context.Background(), h, checkers.Linearizability{}))
	// Output:
	// linearizability   broken   1 objects
	//   configmaps default/snow: these operations have no order that explains all their answers, whatever others have done
	//     [1..3]  a asked to update configmaps default/snow if at revision 5: 200, default/snow at revision 6
	//     [2..4]  b asked to update configmaps default/snow if at revision 5: 200, default/snow at revision 7
}

// A Recorder goes around the transport of any client. With client-go that is
// config.Wrap(recorder.Wrap), or config.Wrap(recorder.Session("a")).
func ExampleRecorder() {
	var recorder checkers.Recorder
	client := http.Client{Transport: recorder.Session("a")(&counter{revision: 5})}
	for range 2 {
		response, err := client.Get("https://cluster.test/api/v1/namespaces/default/configmaps/snow")
		if err != nil {
			fmt.Println(err)
			return
		}
		_, _ = io.Copy(io.Discard, response.Body) // what a client does not read is not known
		_ = response.Body.Close()
	}
	h, err := recorder.History()
	if err != nil {
		fmt.Println(err)
		return
	}
	h.Closed = true // no other client has changed the objects
	report := checkers.Check(context.Background(), h)
	fmt.Println(len(h.Operations), "operations,", report.Verdict())
	// Output: 2 operations, holds
}

// The histories that are known to be bad show what each check finds.
func ExampleKnownBad() {
	for _, k := range checkers.KnownBad()[:2] {
		report := checkers.Check(context.Background(), k.History())
		fmt.Printf("%s: %s: %s\n", k.Name, report.Findings()[0].Check, report.Verdict())
	}
	// Output:
	// stale-read: linearizability: broken
	// lost-update: linearizability: broken
}
