package fault

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/nearest"
)

var update = flag.Bool("update", false, "write the reference page")

const referencePage = "../../docs/reference/points.md"

const referenceHead = `# Points, rules and plans

<!-- Written by go test ./envtest/fault -run TestReference -update; change the catalogue and the texts beside it instead. -->

A point is a place where operations of a control plane can be observed, held, delayed,
failed, lost or reordered. ` + "`snowglobe points`" + ` lists them too. A rule says on one line
what to do to which operations: an action, a point, and KEY=VALUE pairs in any order.

` + "```" + `
fail store/put resource=configmaps name=default/a nth=2 with=unavailable
delay http/* caller=system:serviceaccount:* by=3s probability=0.2
hold hook/start-apiextensions-informers
fail http/create phase=after resource=pods with=503 retry-after=2s times=1 optional
` + "```" + `

A plan is a file of such lines; empty lines and anything after a ` + "`#`" + ` are ignored. Values
with spaces are quoted as in Go. A rule that names something that does not exist, or an
action that has no meaning at its point, is rejected, and the error suggests the nearest
names. A rule that never fires fails its test, unless its last word is ` + "`optional`" + `.

` + "```go" + `
cp := envtest.Start(t, envtest.WithFaults("fail store/put resource=configmaps nth=2 with=unavailable"), envtest.WithSeed(1))
frozen, err := cp.Faults().Inject("freeze cache/configmaps") // until frozen.Remove()
gate, err := cp.Faults().Gate("store/put resource=configmaps name=default/a")
waiting, err := gate.Await(ctx, 1) // who waits; then gate.Release(1), or gate.Open()
` + "```" + `

A ` + "`partition`" + ` rule is about a network path, not about operations: it fires for each
client or server that it cuts off, and does not take the keys that choose among operations
(` + "`nth=`, `every=`, `times=`, `probability=`" + `). A ` + "`fire`" + ` rule is about a lifecycle signal,
in the same way.

Rules apply to an operation in the order in which they were added. Those that say when it
happens (hold, delay, freeze) add up; the first that says what happens to it decides, and
the rules after that one are not considered.
`

// writeReference writes the reference page of points, rules and plans, in Markdown.
func writeReference() []byte {
	var page bytes.Buffer
	page.WriteString(referenceHead)
	title := func(title, head string) { fmt.Fprintf(&page, "\n## %s\n\n| %s | |\n| --- | --- |\n", title, head) }
	explain := func(word, meaning string) { fmt.Fprintf(&page, "| `%s` | %s |\n", word, meaning) }
	title("Actions", "action")
	for _, a := range actions {
		explain(string(a.kind), a.meaning)
	}
	title("Keys", "key")
	for _, k := range ruleKeys {
		explain(k.name, k.meaning)
	}
	title("Errors", "`with=`")
	for _, f := range failures {
		explain(string(f.name), f.meaning)
	}
	page.WriteString("\n## Points\n")
	family := ""
	for _, k := range catalogue {
		if k.family() != family {
			family = k.family()
			fmt.Fprintf(&page, "\n### %s\n", family)
		}
		k.describe(&page)
	}
	return page.Bytes()
}

// describe writes the section of an entry.
func (k *PointKind) describe(page *bytes.Buffer) {
	fmt.Fprintf(page, "\n**`%s`**", k.Name)
	if k.Phases != nil {
		fmt.Fprintf(page, ", phase %s", list(k.Phases))
	}
	fmt.Fprintf(page, ": %s.\n\n", k.Meaning)
	if p := k.placeholder(); p != "" && k.Names != nil {
		fmt.Fprintf(page, "- %s: %s\n", p, list(k.Names))
	}
	if k.Verbs != nil {
		fmt.Fprintf(page, "- verbs: %s\n", list(k.Verbs))
	}
	fmt.Fprintf(page, "- keys: %s\n- actions: %s\n", list(k.Fields), list(k.Actions))
	if k.Failures != nil {
		fmt.Fprintf(page, "- errors: %s\n", list(k.Failures))
	}
	fmt.Fprintf(page, "\n```\n%s\n```\n", k.Example)
}

// list sets words in code, with commas between.
func list[S ~string](words []S) string { return "`" + strings.Join(nearest.Texts(words), "`, `") + "`" }

func TestReference(t *testing.T) {
	page := writeReference()
	if *update {
		require.NoError(t, os.WriteFile(referencePage, page, 0o644))
	}
	have, err := os.ReadFile(referencePage)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(have, page), "docs/reference/points.md is not what the catalogue says; run: go test ./envtest/fault -run TestReference -update")
}

// Every word of rules is explained.
func TestLegends(t *testing.T) {
	for _, a := range actions {
		assert.NotEmpty(t, a.meaning, a.kind)
	}
	for _, k := range ruleKeys {
		assert.NotEmpty(t, k.meaning, k.name)
	}
	var names []Failure
	for _, f := range failures {
		assert.NotEmpty(t, f.meaning, f.name)
		names = append(names, f.name)
	}
	assert.ElementsMatch(t, Failures(), names)
}

// The rules by which the page explains itself are rules.
func TestReferenceRules(t *testing.T) {
	_, text, _ := strings.Cut(referenceHead, "```\n")
	text, _, _ = strings.Cut(text, "```")
	plan, err := ParsePlan("points.md", text, nil)
	require.NoError(t, err)
	assert.Len(t, plan, 4)
}
