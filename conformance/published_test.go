package conformance_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
	"snowglobe.test/conformance/suite"
)

const publishedPage = "../docs/CONFORMANCE.md"

// TestPublishedIsFresh compares docs/CONFORMANCE.md with the cases and the kept results.
func TestPublishedIsFresh(t *testing.T) {
	keepResults(t)
	fresh := published(t, readKept(t))
	if *update || *keepReports != "" {
		require.NoError(t, os.WriteFile(publishedPage, []byte(fresh), 0o644))
	}
	committed, err := os.ReadFile(publishedPage)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(string(committed), fresh), "%s is stale; run: go test ./conformance -run TestPublishedIsFresh -update", publishedPage)
}

// TestKeptIsWhole keeps a report without losing how a case ended.
func TestKeptIsWhole(t *testing.T) {
	report := reported("another", true)
	k := newKept(report)
	for _, result := range report.Results {
		assert.Equal(t, result.State, k.states()[result.Case.ID], result.Case.ID)
	}
	assert.Equal(t, "results/another.json", filepath.ToSlash(k.file()))
	k.Explained = map[string]string{"S6/second": "It is another server."}
	page := published(t, []kept{k})
	assert.Contains(t, page, "| another | v1.37.1 | 2026-11-24 | 1m30s | 1 | 1 | 1 | 0 |")
	assert.Contains(t, page, "- `S6/second` is broken: Expected <string>: 748 to equal <string>: <script>alert(1)</script> It is another server.\n")
	assert.Contains(t, page, "- 1 case needs control planes of its own: none can be started beside it\n")
}

// published is the text of docs/CONFORMANCE.md.
func published(t *testing.T, results []kept) string {
	t.Helper()
	cases := conformance.Cases()
	var out strings.Builder
	fmt.Fprintf(&out, `# Conformance

<!-- Generated: go test ./conformance -run TestPublishedIsFresh -update; with -keep report.json it also
keeps a report that snowglobe conformance --output json has written. -->

%d promises of a Kubernetes API server (%s), each with a test that needs no node. What each
one is, where it comes from and what it needs is in [the list of cases](reference/conformance.md);
how to run them is in [the reference](reference/cli.md#snowglobe-conformance).

A portable case can be asked of any cluster. A linked one launches control planes of its own, with
flags, faults or a clock to judge by, and so runs only in the process that links the API server.

A case of level core tests a promise of every conformant API server: %d of them. One of level versioned
tests a promise of the release that this module links, which older and newer ones need not keep: %d.
A case is not applicable if the target lacks what it needs, is older than the promise, or has its
feature gate switched off. It never counts as kept.

## Results

| target | release | date | took | kept | broken | not applicable | not judged |
| --- | --- | --- | --- | --- | --- | --- | --- |
`, len(cases), engine.Reaches(cases), count(cases, suite.Core), count(cases, suite.Versioned))
	for _, k := range results {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %d | %d | %d | %d |\n", k.name(), k.Release, k.Date, k.took(),
			len(k.Passed), len(k.Failed), sum(k.NotApplicable), sum(k.NotRun))
	}
	writeSystems(&out, cases, results)
	writeDifferences(&out, cases, results)
	writeNotCovered(t, &out, writeKEPs(t, &out, cases))
	return out.String()
}

func count(cases []suite.Case, level engine.Level) (n int) {
	for _, c := range cases {
		if c.Level == level {
			n++
		}
	}
	return n
}

func sum(byReason map[string][]string) (n int) {
	for _, ids := range byReason {
		n += len(ids)
	}
	return n
}

// writeSystems writes systems by targets: how many promises are kept, of how many judged.
func writeSystems(out *strings.Builder, cases []suite.Case, results []kept) {
	fmt.Fprint(out, "\n## Systems by targets\n\nPromises kept, of those that could be judged.\n\n| system | cases |")
	for _, k := range results {
		fmt.Fprintf(out, " %s |", k.name())
	}
	fmt.Fprint(out, "\n| --- | --- |"+strings.Repeat(" --- |", len(results))+"\n")
	for _, system := range reports.Systems() {
		n, passed, judged := 0, make([]int, len(results)), make([]int, len(results))
		for _, c := range cases {
			if c.System != system.ID {
				continue
			}
			n++
			for i, k := range results {
				switch k.states()[c.ID] {
				case engine.Passed:
					passed[i]++
					judged[i]++
				case engine.Failed:
					judged[i]++
				}
			}
		}
		fmt.Fprintf(out, "| %s %s | %d |", system.ID, system.Name, n)
		for i := range results {
			fmt.Fprintf(out, " %s |", ratio(passed[i], judged[i]))
		}
		out.WriteString("\n")
	}
}

func ratio(passed, judged int) string {
	switch judged {
	case 0:
		return "–"
	case passed:
		return fmt.Sprint(passed)
	}
	return fmt.Sprintf("**%d of %d**", passed, judged)
}

// writeDifferences writes what a target breaks, and what could not be judged there.
func writeDifferences(out *strings.Builder, cases []suite.Case, results []kept) {
	fmt.Fprint(out, "\n## Differences\n")
	for _, k := range results {
		fmt.Fprintf(out, "\n### %s\n\n", k.name())
		before := out.Len()
		for _, id := range slices.Sorted(maps.Keys(k.Failed)) {
			fmt.Fprintln(out, strings.TrimSpace(fmt.Sprintf("- `%s` is broken: %s %s", id, strings.Join(strings.Fields(k.Failed[id]), " "), k.Explained[id])))
		}
		for _, byReason := range []map[string][]string{k.NotApplicable, k.NotRun} {
			for _, reason := range slices.Sorted(maps.Keys(byReason)) {
				fmt.Fprintf(out, "- %s %s\n", amount(len(byReason[reason]), reason), reason)
			}
		}
		states, newer := k.states(), 0
		for _, c := range cases {
			if states[c.ID] == "" {
				newer++
			}
		}
		if newer > 0 {
			fmt.Fprintf(out, "- %d of the cases are newer than this result.\n", newer)
		}
		if out.Len() == before {
			fmt.Fprint(out, "None: every promise is kept.\n")
		}
	}
}

// amount counts cases before what they need, or why they did not run.
func amount(n int, reason string) string {
	switch {
	case n == 1:
		return "1 case"
	case strings.HasPrefix(reason, "needs "):
		return fmt.Sprintf("%d cases, each of which", n)
	}
	return fmt.Sprintf("%d cases:", n)
}

// outside is what no case looks at.
const outside = `
## What is not covered

- How fast a server is, how much memory it takes, and how many objects and clients it bears:
  ` + "`snowglobe bench`" + ` measures that.
- All that needs nodes: containers, volumes, the network of Pods, what a kubelet does. Logs, exec
  and the node proxy are judged with a simulated kubelet.
- What controllers do: Deployments, garbage collection, namespaces that empty themselves. A case
  uses no controller, so that it judges a server that has none.
- The built-in groups one by one. The cases write ConfigMaps, Pods, Services, Leases and some
  more, as examples of what the server does alike for all.
- Upgrades of a running cluster, and servers of several releases on one store.
- What a distribution adds, and kubectl.
- What only the inside of a server shows: its logs, and which of its metrics there are.
- These flags: --etcd-servers-overrides and --enable-logs-handler. A second store for some
  resources, and files below /logs, are judged by no case.
`

// writeKEPs writes the index of the cases by KEP, and returns its KEPs.
func writeKEPs(t *testing.T, out *strings.Builder, cases []suite.Case) map[int][]string {
	t.Helper()
	index := map[int][]string{}
	for _, c := range cases {
		for _, label := range c.Labels() {
			if number, found := strings.CutPrefix(label, "KEP-"); found {
				kep, err := strconv.Atoi(number)
				require.NoError(t, err)
				index[kep] = append(index[kep], "`"+c.ID+"`")
			}
		}
	}
	fmt.Fprint(out, "\n## By KEP\n\n| KEP | cases |\n| --- | --- |\n")
	for _, kep := range slices.Sorted(maps.Keys(index)) {
		fmt.Fprintf(out, "| [KEP-%d](https://kep.k8s.io/%d) | %s |\n", kep, kep, strings.Join(index[kep], ", "))
	}
	return index
}

// writeNotCovered writes what is outside, and the KEPs behind the feature gates of the API
// server of the linked release that no case names.
func writeNotCovered(t *testing.T, out *strings.Builder, named map[int][]string) {
	t.Helper()
	out.WriteString(outside)
	fmt.Fprint(out, "\nFeature gates of `k8s.io/apiserver` and `k8s.io/apiextensions-apiserver` whose KEP no case names:\n\n| KEP | gates |\n| --- | --- |\n")
	gates := gatesByKEP(t)
	for _, kep := range slices.Sorted(maps.Keys(gates)) {
		if named[kep] == nil {
			fmt.Fprintf(out, "| [KEP-%d](https://kep.k8s.io/%d) | %s |\n", kep, kep, strings.Join(gates[kep], ", "))
		}
	}
}

var (
	gateKEP  = regexp.MustCompile(`kep: https?://kep\.k8s\.io/(\d+)`)
	gateName = regexp.MustCompile(`^\t(\w+) +featuregate\.Feature = "`)
)

// gatesByKEP reads the feature gates of the API server, and the KEPs in their comments.
func gatesByKEP(t *testing.T) map[int][]string {
	t.Helper()
	modules, gates := upstreamModules(t), map[int][]string{}
	for _, module := range []string{"k8s.io/apiserver", "k8s.io/apiextensions-apiserver"} {
		text, err := os.ReadFile(filepath.Join(modules[module], "pkg", "features", "kube_features.go"))
		require.NoError(t, err)
		kep := 0
		for line := range strings.Lines(string(text)) {
			if found := gateKEP.FindStringSubmatch(line); found != nil {
				kep, err = strconv.Atoi(found[1])
				require.NoError(t, err)
			}
			if found := gateName.FindStringSubmatch(line); found != nil && kep != 0 {
				gates[kep] = append(gates[kep], "`"+found[1]+"`")
				kep = 0
			}
		}
	}
	require.NotEmpty(t, gates)
	return gates
}
