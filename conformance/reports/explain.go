package reports

import (
	"fmt"
	"regexp"
	"strings"

	"snowglobe.test/conformance/transcript"

	"snowglobe.test/conformance/engine"
)

// trailing is the space that indentation leaves at the end of lines.
var trailing = regexp.MustCompile(`(?m) +$`)

// How many of the last exchanges Explain shows: shortExchanges in the output for people, and
// allExchanges where there is room for all that a result keeps.
const (
	shortExchanges = 3
	allExchanges   = 1 << 10
)

// Explain describes a failed case like a bug report: what was promised and where, what the
// case found, at which step, and the last requests before that, in brief.
func Explain(r engine.Result, exchanges int) string {
	return explain(r, exchanges, transcript.Exchange.Brief)
}

func explain(r engine.Result, exchanges int, tell func(transcript.Exchange) string) string {
	var out strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&out, "%-9s %s\n", name, strings.ReplaceAll(strings.TrimSpace(text), "\n",
				"\n"+strings.Repeat(" ", 10)))
		}
	}
	line("promised", r.Case.Promise)
	line("source", r.Case.Source)
	line("found", r.Message)
	line("step", strings.TrimSuffix(r.Location+": "+r.Step, ": "))
	asked := r.Exchanges
	if len(asked) > exchanges {
		asked = asked[len(asked)-exchanges:]
	}
	name := "asked"
	for _, exchange := range asked {
		line(name, tell(exchange))
		name = ""
	}
	if left := len(r.Exchanges) - len(asked); left > 0 {
		line("", fmt.Sprintf("(and %d requests before: see --html, --junit or --output json)", left))
	}
	return trailing.ReplaceAllString(strings.TrimSuffix(out.String(), "\n"), "")
}
