package conformance_test

import (
	"fmt"
	"strings"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
)

// reference is the text of docs/reference/conformance.md.
func reference() string {
	cases := engine.Infos(conformance.Cases())
	var out strings.Builder
	fmt.Fprintf(&out, `# Conformance cases

<!-- Generated: go test ./conformance -run TestPageIsFresh -update -->

%d promises of an API server, each with a test: %s. Run them against a control plane of
Snowglobe, or against any cluster of the linked release:

    snowglobe conformance
    snowglobe conformance --store embedded
    snowglobe conformance --kubeconfig FILE

The first part of an ID is the system that makes the promise.

Portable cases can be asked of any cluster. Linked ones launch control planes of their own, with
flags, faults or a clock to judge by, and so run only in the process that links the API server.

Those of level core are promises of every conformant API server; those of level versioned are
of the release that this module links. [Conformance](../CONFORMANCE.md) has the results on
several targets, an index by KEP, and what is not covered.

| system | is | cases | about failure |
| --- | --- | --- | --- |
`, len(cases), engine.Reaches(cases))
	for _, system := range reports.Systems() {
		n, failures := ofSystem(cases, system.ID)
		fmt.Fprintf(&out, "| %s | %s | %d | %d |\n", system.ID, system.Name, n, failures)
	}
	area := ""
	for _, c := range cases {
		if c.Area != area {
			area = c.Area
			fmt.Fprintf(&out, "\n## %s\n\n| case | promise | level | reach | source | needs |\n| --- | --- | --- | "+
				"--- | --- | --- |\n", area)
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s | %s |\n", c.ID, cell(c.Promise), c.Level, c.Reach(),
			cell(c.Source), c.Needed())
	}
	return out.String()
}

// cell is text as a table in Markdown can hold it.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// ofSystem returns how many cases a system has, and how many of them are about failure.
func ofSystem(cases []engine.Info, system string) (all, failures int) {
	for _, c := range cases {
		if c.System == system {
			all++
			if c.Failure {
				failures++
			}
		}
	}
	return all, failures
}
