package fault

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// referenceHead introduces the reference page.
const referenceHead = `# Points, rules and plans

<!-- Written by go test ./envtest/fault -run TestReference -update; change the catalogue and the texts beside it instead. -->

A point is where an operation of a control plane can be seen, held, delayed,
failed, lost or reordered. ` + "`snowglobe points`" + ` lists them, too. A rule says what is done to
which operations, on one line: an action, a point, and KEY=VALUE in any order.

` + "```" + `
fail store/put resource=configmaps name=default/a nth=2 with=unavailable
delay http/* caller=system:serviceaccount:* by=3s probability=0.2
hold hook/start-apiextensions-informers
fail http/create phase=after resource=pods with=503 retry-after=2s times=1 optional
` + "```" + `

A plan is a file of such lines; empty ones and what follows a ` + "`#`" + ` are comments. Values
with spaces are quoted as in Go. A rule that names what is not there, or an
action that means nothing at its point, is refused with the nearest names, and a
rule that never fires fails its test, unless its last word is ` + "`optional`" + `.

` + "```go" + `
cp := envtest.Start(t, envtest.WithFaults("fail store/put resource=configmaps nth=2 with=unavailable"), envtest.WithSeed(1))
frozen, err := cp.Faults().Inject("freeze cache/configmaps") // until frozen.Remove()
gate, err := cp.Faults().Gate("store/put resource=configmaps name=default/a")
waiting, err := gate.Await(ctx, 1) // who waits; then gate.Release(1), or gate.Open()
` + "```" + `

A rule of ` + "`partition`" + ` is about a network path and not about operations: it fires for each
client or server that it cuts off, and the keys that choose among operations
(` + "`nth=`, `every=`, `times=`, `probability=`" + `) are not for it.

An operation meets the rules in the order in which they were added. Those that
say when (hold, delay, freeze) add up; the first that says what becomes of it
ends the look.
`

// legend is a word of rules, and what it means.
type legend struct{ word, meaning string }

// actionLegend is what actions do, in the order of actionKinds.
var actionLegend = []legend{
	{string(Hold), "it waits until a gate is opened"},
	{string(Delay), "it waits `by=`"},
	{string(Freeze), "it waits if it is of a later revision than `at=`; without `at=`, always"},
	{string(Fail), "it does not happen, and the caller gets the error `with=`"},
	{string(LoseReply), "it happens, and the caller gets the error `with=` instead of the answer; without `with=`, a connection that breaks"},
	{string(Drop), "it does not happen, and nobody is told: a caller waits until it gives up"},
	{string(Duplicate), "it happens twice; the answer is the second one"},
	{string(Cancel), "its context is cancelled, as if the caller had gone; a watch ends"},
	{string(Compact), "the store forgets all revisions before its present one, then it goes on"},
	{string(LoseLeader), "the store loses its leader, then it goes on"},
	{string(Crash), "the server dies before it"},
	{string(Partition), "nothing gets through until the rule ends"},
}

// keyLegend is what the keys of rules mean, in the order of ruleKeys.
var keyLegend = []legend{
	{"phase", "`before` it happens, which is meant without the key; `after` it, before its answer is sent; `stream`, at a part of its answer"},
	{"server", "the control plane, or one of its API servers; `*` is any text, as in the next keys"},
	{"verb", "one of the verbs of the point"},
	{"resource", "the plural with its group, such as `configmaps` or `deployments.apps`; the subresource of a request is another, such as `pods/status` or `deployments.apps/scale`"},
	{"namespace", "the object's"},
	{"name", "the object's, as NAME or NAMESPACE/NAME"},
	{"caller", "the user or the component that asks"},
	{"key", "the beginning of a key of the store, of a path, or of an address"},
	{"nth", "only some of what matches, counted for this rule from 1: `nth=2`, `nth=2..5`, `nth=2..`"},
	{"every", "only each second, each third, ...: `every=3`"},
	{"times", "how often the rule fires at most"},
	{"probability", "above 0, at most 1; seed, rule and operation decide, so a run with the same seed is the same"},
	{"after", "the rule begins so long after it was added"},
	{"for", "and ends so long after that"},
	{"until", "or so long after it was added"},
	{"by", "how long a delay takes"},
	{"with", "the error"},
	{"retry-after", "sent along with 429 and 503, in whole seconds"},
	{"at", "the last revision that a freeze lets pass"},
}

// failureLegend is what the errors are, in the order of their constants.
var failureLegend = []legend{
	{string(Unavailable), "no connection to the store"},
	{string(NoLeader), "the store has no leader"},
	{string(LeaderChanged), "the store has another leader; what was asked for may have happened"},
	{string(RequestTimedOut), "the store gave up on the request; it may have happened"},
	{string(Timeout), "the caller's deadline passed; it may have happened"},
	{string(Compacted), "the revision that was asked for is gone"},
	{string(TooManyRequests), "a Status of that code"},
	{string(InternalError), "a Status of that code"},
	{string(ServiceUnavailable), "a Status of that code"},
	{string(GatewayTimeout), "a Status of that code"},
	{string(Gone), "a Status of that code, with reason Expired, as after a compaction"},
	{string(Reset), "the connection is reset by the peer"},
	{string(EOF), "the connection ends; in a stream, in the middle"},
	{string(Refused), "nobody listens there"},
	{string(Unreachable), "there is no way to get there"},
	{string(Expired), "the token or the certificate is too old"},
	{string(Unauthorized), "the token or the certificate is not known"},
	{string(PlainError), "an error without any further meaning"},
}

// WriteReference writes the reference page of points, rules and plans, in
// Markdown.
func WriteReference(w io.Writer) error {
	var page bytes.Buffer
	page.WriteString(referenceHead)
	for _, part := range []struct {
		title, head string
		legend      []legend
	}{{"Actions", "action", actionLegend}, {"Keys", "key", keyLegend}, {"Errors", "`with=`", failureLegend}} {
		fmt.Fprintf(&page, "\n## %s\n\n| %s | |\n| --- | --- |\n", part.title, part.head)
		for _, l := range part.legend {
			fmt.Fprintf(&page, "| `%s` | %s |\n", l.word, l.meaning)
		}
	}
	page.WriteString("\n## Points\n")
	family := ""
	for i := range catalogue {
		k := &catalogue[i]
		if k.family() != family {
			family = k.family()
			fmt.Fprintf(&page, "\n### %s\n", family)
		}
		k.describe(&page)
	}
	_, err := w.Write(page.Bytes())
	return err
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
func list[S ~string](words []S) string { return "`" + strings.Join(texts(words), "`, `") + "`" }
