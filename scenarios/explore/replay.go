package explore

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/dustin/go-humanize/english"

	"snowglobe.test/scenarios/script"
)

// replay returns the text of the script that repeats a failure. Its title says what fails,
// on how many rules and operations that depends, and how many other seeds fail too.
func replay(of script.Script, c Case, found *Found) string {
	title := []string{fmt.Sprintf("# This fails: %s.", strings.TrimRight(summary(found.Failure), "."))}
	title = append(title, fmt.Sprintf("# Explore found it in %s; snowglobe run repeats it.", of.Name))
	takes := fmt.Sprintf("# It takes %s on %s", count(len(c.Plan), "rule"), count(found.Operations, "operation"))
	switch {
	case len(c.Plan) == 0:
		takes = "# It takes no rule, only the order of this seed"
	case found.Others == found.OtherSeeds && found.Others > 0:
		takes += ", with any seed"
	}
	title = append(title, fmt.Sprintf("%s: %d of %d other seeds fail as well.", takes, found.Others, found.OtherSeeds))
	draft := of.Edit()
	draft.SetTitle(title...)
	return string(c.with(draft.Script()).Text())
}

func count(n int, of string) string { return english.Plural(n, of, "") }

// maxSummary is how much of an error a comment has, in bytes.
const maxSummary = 200

// summary is the failure in a line.
func summary(f *Failure) string {
	line, _, _ := strings.Cut(strings.TrimSpace(f.Text), "\n")
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line)
	if len(line) > maxSummary {
		line = strings.ToValidUTF8(line[:maxSummary], "") + " ..."
	}
	return line
}

var noLetters = regexp.MustCompile("[^a-z]+")

// slug is a name for the file of a failure.
func slug(f *Failure) string {
	const longest = 48
	text := strings.TrimLeft(noLetters.ReplaceAllString(strings.ToLower(f.Cause), "-"), "-")
	text = strings.Trim(text[:min(len(text), longest)], "-")
	return fmt.Sprintf("%s-%s-%08x", f.Kind, text, uint32(hash(string(f.Kind), f.Cause)))
}
