package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"snowglobe.test/fakes/stub"
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
func (s *session) answer(host, file string) error {
	found, err := s.fakeAt(host)
	if err != nil {
		return err
	}
	var answers []answer
	if err := yaml.UnmarshalStrict([]byte(s.ts.ReadFile(file)), &answers); err != nil {
		return fmt.Errorf("%w: %s: %w", errUsage, file, err)
	}
	for i := range answers {
		if err := answers[i].validate(); err != nil {
			return fmt.Errorf("%w: %s: answer %d: %w", errUsage, file, i+1, err)
		}
	}
	// The newest rule of a fake goes first.
	for i, a := range slices.Backward(answers) {
		if a.Hold {
			a.gate = stub.NewGate()
			found.gates = append(found.gates, a.gate)
		}
		if err := found.use(a); err != nil {
			return fmt.Errorf("%w: %s: answer %d: %w", errUsage, file, i+1, err)
		}
	}
	return nil
}

func (a *answer) validate() error {
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

// useOf returns what adds an answer to the table of a fake.
func useOf[Request, Answer any](table *stub.Table[Request, Answer]) func(answer) error {
	return func(a answer) error {
		rule := stub.Rule[Request, Answer]{Name: a.Name, Times: a.Times, Gate: a.gate, When: whenOf[Request](a.When)}
		if a.Delay != nil {
			rule.Delay = a.Delay.Duration
		}
		reply := func(answer Answer, err error) {
			rule.Answer = func(context.Context, Request) (Answer, error) { return answer, err }
		}
		var said Answer
		switch {
		case a.Status != 0:
			reply(said, stub.Status{Code: a.Status})
		case a.Break:
			reply(said, stub.ErrBreak)
		case a.Answer != nil:
			if err := yaml.UnmarshalStrict(a.Answer, &said); err != nil {
				return err
			}
			reply(said, nil)
		}
		table.Use(rule)
		return nil
	}
}

// whenOf reports whether a request has the fields that are wanted, nil if none are.
func whenOf[Request any](want map[string]any) func(Request) bool {
	if want == nil {
		return nil
	}
	return func(request Request) bool {
		content, err := json.Marshal(request)
		if err != nil {
			return false
		}
		var is any
		if err := json.Unmarshal(content, &is); err != nil {
			return false
		}
		return len(differences("", is, want)) == 0
	}
}

// callsOf returns what tells the calls of a fake, a line each.
func callsOf[Request, Answer any](table *stub.Table[Request, Answer], asked func(Request) string, said func(Answer) string) func() []string {
	return func() []string {
		var lines []string
		for _, call := range table.Calls() {
			outcome := "held"
			switch {
			case call.Err != nil:
				outcome = call.Err.Error()
			case call.Done:
				outcome = said(call.Answer)
			}
			lines = append(lines, fmt.Sprintf("%s: %s", asked(call.Request), outcome))
		}
		return lines
	}
}
