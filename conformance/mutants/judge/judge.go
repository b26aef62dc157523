// Package judge owns the program that runs conformance cases in a process of its own, to find
// out whether they notice a mutant. It is linked with upstream's mutated source; package
// workshop builds it.
package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/mutants/trial"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/target"
	"snowglobe.test/internal/wall"
)

// Main runs the cases that its input asks for and writes a line about each. reached returns
// the mutants that were reached since it was called last. The exit code is 0 if all cases have
// run, whatever came of them.
func Main(in io.Reader, out io.Writer, reached func() []int) int {
	var order trial.Order
	if err := json.NewDecoder(in).Decode(&order); err != nil {
		fmt.Fprintln(os.Stderr, "judge: read the order:", err)
		return 2
	}
	cases, err := chosen(order.Cases)
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		return 2
	}
	debug.SetGCPercent(200) // one control plane after another: some memory for time
	run := engine.Simulate[*suite.T]
	if order.RealTime {
		run = engine.Run[*suite.T]
	}
	teller := &teller{out: json.NewEncoder(out), reached: reached}
	teller.next()
	if _, err := run(context.Background(), target.Memory(), cases, teller); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		return 1
	}
	return 0
}

// chosen are the cases with the IDs; no IDs mean all cases.
func chosen(ids []string) ([]suite.Case, error) {
	all := conformance.Cases()
	if len(ids) == 0 {
		return all, nil
	}
	byID := map[string]suite.Case{}
	for _, c := range all {
		byID[c.ID] = c
	}
	var cases []suite.Case
	for _, id := range ids {
		c, ok := byID[id]
		if !ok {
			return nil, fmt.Errorf("there is no case %s", id)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// teller writes a line when the control plane is ready, and one after each case.
type teller struct {
	out     *json.Encoder
	reached func() []int
	took    time.Duration
	end     func()
}

func (t *teller) next() {
	t.took = 0
	t.end = wall.Timing(&t.took)
}

func (t *teller) tell(line trial.Line) {
	t.end()
	line.Took, line.Reached = t.took, t.reached()
	if err := t.out.Encode(line); err != nil {
		os.Exit(3) // who asked is gone
	}
	t.next()
}

// Begin implements engine.Reporter.
func (t *teller) Begin(string, []engine.Info) { t.tell(trial.Line{}) }

// Case implements engine.Reporter.
func (t *teller) Case(result engine.Result) {
	line := trial.Line{Case: result.Case.ID, State: string(result.State)}
	if result.State == engine.Failed {
		line.Message = result.Location + ": " + result.Message
	}
	t.tell(line)
}

// End implements engine.Reporter.
func (t *teller) End(engine.Report) {}
