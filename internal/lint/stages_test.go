package lint

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	assembled = regexp.MustCompile(`(?m)^\t\{"([a-z-]+)", \(\*Chain\)\.`)
	described = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| `[a-z]+\\.go` \\|")
)

// stages is the rule that docs/ARCHITECTURE.md describes the stages of the chain, in
// order, and no others. The last, run, is not part of the assembly.
func stages(t *tree) []string {
	const code, text = "envtest/chain/stages.go", "docs/ARCHITECTURE.md"
	found := map[string][]string{code: nil, text: nil}
	for _, f := range t.files {
		switch f.path {
		case code:
			found[code] = append(names(assembled, f), "run")
		case text:
			found[text] = names(described, f)
		}
	}
	if !slices.Equal(found[code], found[text]) {
		return []string{text + " describes the stages " + joined(found[text]) + ", but " + code + " has " + joined(found[code])}
	}
	return nil
}

func TestStages(t *testing.T) { obeys(t, stages(repository(t))) }

func TestStagesComplains(t *testing.T) {
	const table = "| stage | file |\n| --- | --- |\n| `options` | `options.go` | x |\n| `run` | `run.go` | x |\n"
	chain := func(s string) string { return "package chain\n\nvar assembly = []stage{\n" + s + "}\n" }
	const options, egress = "\t{\"options\", (*Chain).completeOptions},\n", "\t{\"egress\", (*Chain).buildEgress},\n"
	try(t, stages, []fixture{
		{"good", map[string]string{"docs/ARCHITECTURE.md": table, "envtest/chain/stages.go": chain(options)}, nil},
		{"bad", map[string]string{"docs/ARCHITECTURE.md": table, "envtest/chain/stages.go": chain(options + egress)}, []string{
			"describes the stages options, run, but envtest/chain/stages.go has options, egress, run"}},
		{"gone", map[string]string{"docs/ARCHITECTURE.md": "# A\n", "envtest/chain/stages.go": chain(options)}, []string{"describes the stages none"}},
	})
}

func names(expr *regexp.Regexp, f file) []string {
	var found []string
	for _, match := range expr.FindAllSubmatch(f.text, -1) {
		found = append(found, string(match[1]))
	}
	return found
}

func joined(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
