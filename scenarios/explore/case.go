package explore

import (
	"fmt"
	"slices"
	"strconv"
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
	// start is the command after which a script has a server.
	start = "start"
	// bootSeed is the seed of what comes before "reseed" in a script that sets none.
	bootSeed = 1
)

// with returns the script with a case in it: a script that says its seed and its faults,
// and ends with a check. "snowglobe run" repeats the run. In a script that has "reseed", the
// case begins there.
func (c Case) with(s script.Script) script.Script {
	draft := s.Edit()
	draft.RemoveCommands(func(line string) bool {
		words := strings.Fields(line)
		return len(words) > 1 && (words[0] == script.SeedCommand || words[0] == script.ClockCommand || words[1] == planFile)
	})
	draft.RemoveFile(planFile)
	var faults []string
	if len(c.Plan) > 0 {
		faults = []string{"faults " + planFile}
		draft.SetFile(planFile, c.Plan.String())
	}
	seed, search := c.Seed, s.Search()
	reseed := seeded(script.ReseedCommand, c.Seed, search)
	if draft.ReplaceCommand(script.ReseedCommand, append([]string{reseed}, faults...)) {
		seed, search, faults = bootSeed, nil, nil
		if own, ok := s.Seed(); ok {
			seed = own
		}
	}
	head := []string{seeded(script.SeedCommand, seed, search)}
	if begin, ok := s.Clock(); ok {
		head = append(head, script.ClockCommand+" "+begin.Format(time.RFC3339Nano))
	}
	draft.Begin(append(head, faults...)...)
	if !draft.HasCommand(check) {
		draft.End(check)
	}
	draft.Tidy()
	return draft.Script()
}

// seeded is the command with a seed, and how that chooses among interleavings.
func seeded(command string, seed uint64, search []string) string {
	return strings.Join(append([]string{command, strconv.FormatUint(seed, 10)}, search...), " ")
}

// Searching returns the script with how each of its cases chooses among interleavings, as behind the number of a
// seed, in place of what it says.
func Searching(s script.Script, search string) script.Script {
	words := strings.Fields(search)
	draft := s.Edit()
	if draft.ReplaceCommand(script.ReseedCommand, []string{seeded(script.ReseedCommand, 0, words)}) {
		return draft.Script()
	}
	seed, ok := s.Seed()
	if !ok {
		seed = bootSeed
	}
	draft.RemoveCommands(func(line string) bool { return strings.Fields(line)[0] == script.SeedCommand })
	draft.Begin(seeded(script.SeedCommand, seed, words))
	return draft.Script()
}

// Task is a run of the script with the case.
func (c Case) Task(s script.Script) Task {
	return Task{Name: s.Name, Text: string(c.with(s).Text())}
}

// Booted returns the script with "reseed" after its first start, so that its cases begin at a server that
// has started. It is the script as it is if it has "reseed" already, or is about that start: it has a
// command before it that may change how it goes.
func Booted(s script.Script) script.Script {
	lines, err := s.Commands()
	if err != nil {
		return s // it is told when the script runs
	}
	if slices.ContainsFunc(lines, func(line script.Line) bool { return line.Words[0] == script.ReseedCommand }) {
		return s
	}
	for _, line := range lines {
		switch line.Words[0] {
		case script.SeedCommand, script.ClockCommand, "skip", "fake":
		case start:
			if len(line.Conditions) > 0 || line.Negated {
				return s
			}
			draft := s.Edit()
			first := strings.TrimSpace(s.Lines()[line.Number-1])
			draft.ReplaceCommand(start, []string{first, seeded(script.ReseedCommand, 0, s.SeedSearch())})
			return draft.Script()
		default:
			return s
		}
	}
	return s
}

// Beginning is what a script does before "reseed", and the files that it names there; "" if it has
// no such command. Scripts with one beginning are the same until then.
func Beginning(s script.Script) string {
	lines := s.Lines()
	at := slices.IndexFunc(lines, func(line string) bool {
		words := strings.Fields(line)
		return len(words) > 0 && words[0] == script.ReseedCommand
	})
	if at < 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString(strings.Join(lines[:at], "\n"))
	for _, file := range s.Files() {
		if strings.Contains(text.String(), file.Name) {
			fmt.Fprintf(&text, "\n-- %s --\n%s", file.Name, file.Text)
		}
	}
	return text.String()
}
