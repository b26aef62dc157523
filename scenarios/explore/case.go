package explore

import (
	"fmt"
	"strings"
	"time"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/scenarios/script"
)

// Case is what a run has besides the script: all that explore varies.
type Case struct {
	Seed uint64
	Plan fault.Plan
}

const (
	// planFile is the file that explore adds to a script.
	planFile = "explore.faults"
	// check is the command that a script ends with.
	check = "check"
)

// with returns the script with a case in it: a script that says its seed and its faults,
// and ends with a check. "snowglobe run" repeats the run.
func (c Case) with(s script.Script) script.Script {
	draft := s.Edit()
	draft.RemoveCommands(func(line string) bool {
		words := strings.Fields(line)
		return len(words) > 1 && (words[0] == script.SeedCommand || words[0] == script.ClockCommand || words[1] == planFile)
	})
	head := []string{fmt.Sprintf("%s %d", script.SeedCommand, c.Seed)}
	if begin, ok := s.Clock(); ok {
		head = append(head, script.ClockCommand+" "+begin.Format(time.RFC3339Nano))
	}
	draft.RemoveFile(planFile)
	if len(c.Plan) > 0 {
		head = append(head, "faults "+planFile)
		draft.SetFile(planFile, c.Plan.String())
	}
	draft.Begin(head...)
	if !draft.HasCommand(check) {
		draft.End(check)
	}
	draft.Tidy()
	return draft.Script()
}

// Task is a run of the script with the case.
func (c Case) Task(s script.Script) Task {
	return Task{Name: s.Name, Text: string(c.with(s).Text())}
}
