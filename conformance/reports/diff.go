package reports

import (
	"fmt"
	"io"
	"strings"

	"snowglobe.test/conformance/engine"
)

// Comparison is what two targets do differently.
type Comparison struct {
	A Compared `json:"a"`
	B Compared `json:"b"`
	// Same is how many cases ended alike.
	Same        int          `json:"same"`
	Differences []Difference `json:"differences"`
}

// Compared is a report that is compared.
type Compared struct {
	Name    string `json:"name"` // of its file
	Target  string `json:"target"`
	Release string `json:"release,omitempty"`
}

// Difference is a case that ended in another state, or is in one of the reports only.
type Difference struct {
	Case engine.Info `json:"case"`
	A    *Outcome    `json:"a,omitempty"` // nil: it is not in that report
	B    *Outcome    `json:"b,omitempty"`
}

// Outcome is how a case ended.
type Outcome struct {
	State   engine.State `json:"state"`
	Message string       `json:"message,omitempty"`
}

// Diff compares two reports, each with a name for people.
func Diff(nameA string, a engine.Report, nameB string, b engine.Report) Comparison {
	c := Comparison{A: compared(nameA, a), B: compared(nameB, b), Differences: []Difference{}}
	inB := outcomes(b)
	for _, result := range a.Results {
		ours := &Outcome{result.State, result.Message}
		theirs := inB[result.Case.ID]
		delete(inB, result.Case.ID)
		if theirs != nil && theirs.State == ours.State {
			c.Same++
			continue
		}
		c.Differences = append(c.Differences, Difference{result.Case, ours, theirs})
	}
	for _, result := range b.Results {
		if theirs := inB[result.Case.ID]; theirs != nil {
			c.Differences = append(c.Differences, Difference{result.Case, nil, theirs})
		}
	}
	return c
}

func compared(name string, r engine.Report) Compared {
	target := r.Target
	if r.VirtualTime {
		target += ", virtual time"
	}
	return Compared{name, target, r.Release}
}

func outcomes(r engine.Report) map[string]*Outcome {
	all := map[string]*Outcome{}
	for _, result := range r.Results {
		all[result.Case.ID] = &Outcome{result.State, result.Message}
	}
	return all
}

// String names the report and its target.
func (c Compared) String() string {
	text := c.Name + ": " + c.Target
	if c.Release != "" {
		text += ", " + c.Release
	}
	return text
}

// WriteText writes the comparison for people.
func (c Comparison) WriteText(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "A is %s\nB is %s\n", c.A, c.B)
	for _, d := range c.Differences {
		fmt.Fprintf(&out, "\n%s: %s\n", d.Case.ID, d.Case.Promise)
		if d.Case.Source != "" {
			fmt.Fprintf(&out, "  source: %s\n", d.Case.Source)
		}
		fmt.Fprintf(&out, "  A %s\n  B %s\n", d.A, d.B)
	}
	fmt.Fprintf(&out, "\n%d of %d cases differ\n", len(c.Differences), len(c.Differences)+c.Same)
	_, err := io.WriteString(w, out.String())
	return err
}

// WriteJSON writes the comparison for programs.
func (c Comparison) WriteJSON(w io.Writer) error { return writeJSON(w, c) }

// String describes the outcome for people.
func (o *Outcome) String() string {
	switch {
	case o == nil:
		return "does not have it"
	case o.Message == "":
		return string(o.State)
	}
	return string(o.State) + ": " + strings.ReplaceAll(strings.TrimSpace(o.Message), "\n", "\n    ")
}
