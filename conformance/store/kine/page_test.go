package kine

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/store"
)

var update = flag.Bool("update", false, "judge the stores, and write the page")

const page = "../../../docs/reference/stores.md"

// TestPage judges the stores and writes the page with -update. Without, it checks that the
// page has the cases there are.
func TestPage(t *testing.T) {
	if *update {
		outcomes := map[string]map[string]engine.Result{}
		for _, s := range stores {
			outcomes[s.name] = judge(t, s)
		}
		require.NoError(t, os.WriteFile(page, []byte(write(t, outcomes)), 0o644))
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, c := range store.Cases() {
		assert.Contains(t, string(text), row(c), "%s is stale; run: go -C conformance/store/kine test . -run TestPage -update", page)
	}
	assert.Contains(t, string(text), kineRelease(t))
	assert.Equal(t, len(store.Cases()), strings.Count(string(text), "| kept | kept | "), "etcd and the store in memory keep all promises; run with -update")
}

// TestKine judges kine, and finds what is known to be different.
func TestKine(t *testing.T) {
	outcomes := judge(t, stores[2])
	for _, different := range []string{"txn/delete-of-a-missing-key-is-refused", "etcd-kv/version-counts-updates", "etcd-txn/is-one-revision", "etcd-lease/revocation-deletes-its-keys"} {
		assert.Equal(t, engine.Failed, outcomes[different].State, different)
	}
	for _, same := range []string{"kv/create-is-read-back", "paging/pages-join-up", "lease/expiry-deletes-all-its-keys", "watch/event-tells-what-happened"} {
		assert.NotEqual(t, engine.Failed, outcomes[same].State, same)
	}
}

// judge judges a store by all cases.
func judge(t *testing.T, s judgedStore) map[string]engine.Result {
	t.Helper()
	opened, err := store.Open(t.Context(), store.Config{Endpoints: []string{s.start(t)}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, opened.Close(context.Background())) })
	outcomes := map[string]engine.Result{}
	for _, c := range store.Cases() {
		outcomes[c.ID] = engine.Judge(t.Context(), opened, c)
	}
	return outcomes
}

// row is the beginning of a case's row, which does not depend on outcomes.
func row(c store.Case) string {
	return fmt.Sprintf("| `%s` | %s | ", c.ID, strings.ReplaceAll(c.Promise, "|", `\|`))
}

func write(t *testing.T, outcomes map[string]map[string]engine.Result) string {
	var out strings.Builder
	fmt.Fprintf(&out, `# Stores

<!-- Generated: go -C conformance/store/kine test . -run TestPage -update -->

What Kubernetes needs of a store, and which stores keep it, as

    snowglobe conformance store --endpoints URL --level etcd

judged them on %s. A store of your own is judged by the same command.

| column | is |
| --- | --- |
`, time.Now().UTC().Format("2 January 2006"))
	for _, s := range stores {
		fmt.Fprintf(&out, "| %s | %s |\n", s.name, s.about(t))
	}
	fmt.Fprint(&out, "\n| | etcd | snowglobe | kine |\n| --- | --- | --- | --- |\n")
	for _, level := range []engine.Level{store.Kubernetes, store.Etcd} {
		fmt.Fprintf(&out, "| promises of level %s that are kept |", level)
		for _, s := range stores {
			kept, all := 0, 0
			for _, c := range store.Cases() {
				if c.Level == level {
					all++
					if outcomes[s.name][c.ID].State == engine.Passed {
						kept++
					}
				}
			}
			fmt.Fprintf(&out, " %d of %d |", kept, all)
		}
		fmt.Fprintln(&out)
	}
	writeLevel(&out, store.Kubernetes, "What an API server relies on, asked for as it does", outcomes)
	writeLevel(&out, store.Etcd, "What etcd promises besides", outcomes)
	writeBroken(&out, outcomes["kine"])
	return out.String()
}

func writeLevel(out *strings.Builder, level engine.Level, title string, outcomes map[string]map[string]engine.Result) {
	fmt.Fprintf(out, "\n## Level %s\n\n%s.\n\n| case | promise | etcd | snowglobe | kine | source |\n| --- | --- | --- | --- | --- | --- |\n", level, title)
	for _, c := range store.Cases() {
		if c.Level != level {
			continue
		}
		out.WriteString(row(c))
		for _, s := range stores {
			fmt.Fprintf(out, "%s | ", verdict(outcomes[s.name][c.ID]))
		}
		fmt.Fprintf(out, "%s |\n", c.Source)
	}
}

func verdict(o engine.Result) string {
	switch o.State {
	case engine.Failed:
		return "**broken**"
	case engine.NotApplicable:
		return "not judged"
	}
	return "kept"
}

// ownPrefix is what keys begin with, another one in each run.
var ownPrefix = regexp.MustCompile(`/snowglobe-conformance/[a-z0-9]+/[a-z0-9-]+/`)

// writeBroken lists what the cases say of kine.
func writeBroken(out *strings.Builder, outcomes map[string]engine.Result) {
	fmt.Fprint(out, `
## What etcd does

An answer about progress goes to all watches of a client's stream, and the notice that a watch is
created may overtake answers which were asked for before. etcd v3.7.3 so tells a watch of the past a
revision before its events: in 148 of 200 rounds, in which another watch of the stream had asked for
progress without a pause. A client whose connection breaks then goes on after that revision. The
cases ask for progress once all watches of a stream are created.

## What kine does

Revisions, and what happens under load, differ from run to run. kine v0.17.0, which is older than
the fix of https://github.com/k3s-io/kine/issues/731, also breaks
`+"`progress/is-never-before-an-event`, `progress/outlives-cancelled-watches`, `watch/from-now` and `watch/tells-when-it-is-created`"+`.

`)
	for _, c := range store.Cases() {
		o := outcomes[c.ID]
		if o.State == engine.Passed {
			continue
		}
		said := strings.Join(strings.Fields(ownPrefix.ReplaceAllString(o.Message, "")), " ")
		if runes := []rune(said); len(runes) > 300 {
			said = string(runes[:300]) + "..."
		}
		fmt.Fprintf(out, "- `%s`: `%s`\n", c.ID, strings.ReplaceAll(said, "`", "'"))
	}
}
