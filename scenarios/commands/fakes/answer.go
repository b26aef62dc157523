package fakes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"snowglobe.test/fakes/stub"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
	"snowglobe.test/scenarios/subset"
)

// answer is an entry of a file of answers: how a fake answers some requests.
type answer struct {
	Name  string           `json:"name,omitempty"`
	When  map[string]any   `json:"when,omitempty"`
	Times int              `json:"times,omitempty"`
	Hold  bool             `json:"hold,omitempty"`
	Delay *metav1.Duration `json:"delay,omitempty"`
	// At most one of these says what is answered.
	Status int             `json:"status,omitempty"`
	Break  bool            `json:"break,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`

	gate *stub.Gate
}

// answer tells a fake the answers in a file.
func (f *Fakes) answer(host, file string) error {
	found, err := f.fakeAt(host)
	if err != nil {
		return err
	}
	text, err := f.run.ReadFile(file)
	if err != nil {
		return err
	}
	answers, err := script.ReadList[answer](text, "answer")
	if err != nil {
		return fmt.Errorf("%w: %s: %w", engine.ErrUsage, file, err)
	}
	// The newest rule of a fake goes first.
	for i, a := range slices.Backward(answers) {
		if a.Hold {
			a.gate = stub.NewGate()
			found.gates = append(found.gates, a.gate)
		}
		if err := found.use(a); err != nil {
			return fmt.Errorf("%w: %s: answer %d: %w", engine.ErrUsage, file, i+1, err)
		}
	}
	return nil
}

// checkAnswers checks a file of answers as far as that is the same for all kinds of fakes.
var checkAnswers = script.ListCheck[answer]("answer")

// Validate implements what script.ReadList asks for.
func (a answer) Validate() error {
	said := 0
	for _, given := range []bool{a.Status != 0, a.Break, a.Answer != nil} {
		if given {
			said++
		}
	}
	switch {
	case said > 1:
		return fmt.Errorf("it can have one of status, break and answer")
	case a.Status != 0 && (a.Status < 200 || a.Status > 599):
		return fmt.Errorf("status %d is not an HTTP status from 200 to 599", a.Status)
	case a.Delay != nil && a.Delay.Duration <= 0:
		return fmt.Errorf("delay %s is not a time above 0", a.Delay.Duration)
	case a.Times < 0:
		return fmt.Errorf("times %d is not a number of requests", a.Times)
	}
	return nil
}

// reply is the type of the field Answer of a stub.Rule.
type reply[Request, Answer any] = func(context.Context, Request) (Answer, error)

// useOf returns a function that adds an answer to the table of a fake. show returns the part
// of a request that "when" is compared with, and read makes a reply of "answer".
func useOf[Request, Answer any](table *stub.Table[Request, Answer], show func(Request) any, read func(json.RawMessage) (reply[Request, Answer], error)) func(answer) error {
	return func(a answer) error {
		rule := stub.Rule[Request, Answer]{Name: a.Name, Times: a.Times, Gate: a.gate, When: whenOf(a.When, show)}
		if a.Delay != nil {
			rule.Delay = a.Delay.Duration
		}
		fail := func(err error) {
			rule.Answer = func(context.Context, Request) (none Answer, _ error) { return none, err }
		}
		switch {
		case a.Status != 0:
			fail(stub.Status{Code: a.Status})
		case a.Break:
			fail(stub.ErrBreak)
		case a.Answer != nil:
			var err error
			if rule.Answer, err = read(a.Answer); err != nil {
				return err
			}
		}
		table.Use(rule)
		return nil
	}
}

// asItIs shows all of a request.
func asItIs[Request any](request Request) any { return request }

// constant replies with what was read.
func constant[Request, Answer any](content json.RawMessage) (reply[Request, Answer], error) {
	var said Answer
	if err := yaml.UnmarshalStrict(content, &said); err != nil {
		return nil, err
	}
	return always[Request](said), nil
}

// always replies in the same way.
func always[Request, Answer any](said Answer) reply[Request, Answer] {
	return func(context.Context, Request) (Answer, error) { return said, nil }
}

// whenOf returns a function that reports whether what show returns for a request has the
// wanted fields. It returns nil if want is nil.
func whenOf[Request any](want map[string]any, show func(Request) any) func(Request) bool {
	if want == nil {
		return nil
	}
	return func(request Request) bool {
		content, err := json.Marshal(show(request))
		if err != nil {
			return false
		}
		var is any
		if err := json.Unmarshal(content, &is); err != nil {
			return false
		}
		return len(subset.Differences(is, want)) == 0
	}
}

// callsOf returns a function that describes the calls of a fake, in a line each.
func callsOf[Request, Answer any](table *stub.Table[Request, Answer], asked func(Request) string, said func(Answer) string) func() []string {
	return func() []string { return textsOf(toldCalls(table, asked, said)) }
}

// toldCall is a call of a fake, told in a line.
type toldCall struct {
	arrived time.Time
	text    string
}

func toldCalls[Request, Answer any](table *stub.Table[Request, Answer], asked func(Request) string, said func(Answer) string) []toldCall {
	var told []toldCall
	for _, call := range table.Calls() {
		outcome := "held"
		switch {
		case call.Err != nil:
			outcome = call.Err.Error()
		case call.Done:
			outcome = said(call.Answer)
		}
		told = append(told, toldCall{call.Arrived, fmt.Sprintf("%s: %s", asked(call.Request), outcome)})
	}
	return told
}

func textsOf(told []toldCall) []string {
	var texts []string
	for _, call := range told {
		texts = append(texts, call.text)
	}
	return texts
}
