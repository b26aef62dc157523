package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"snowglobe.test/conformance/engine"
)

// The forms of output.
const (
	OutputText = "text"
	OutputJSON = "json"
)

// System is a part of the server that cases test.
type System struct{ ID, Name string }

// Systems are all parts of the server.
func Systems() []System { return slices.Clone(systems) }

var systems = []System{
	{"S1", "server chain"},
	{"S2", "node dialer and kubelet client"},
	{"S3", "kube-apiserver configuration"},
	{"S4", "generic config: serving, filters, limits"},
	{"S5", "storage: keys, encodings, encryption, history"},
	{"S6", "watch cache"},
	{"S7", "authentication"},
	{"S8", "authorization"},
	{"S9", "admission"},
	{"S10", "apiextensions server"},
	{"S11", "CRD sync signal and not-found handler"},
	{"S12", "kube-apiserver and its REST storage"},
	{"S13", "bootstrap controllers"},
	{"S14", "aggregator"},
	{"S15", "health checks"},
	{"S16", "run: hooks and signals"},
	{"S17", "shared informers"},
	{"S18", "discovery"},
	{"S19", "audit"},
	{"S20", "version"},
}

// List writes cases, as "text" or "json".
func List[T any](w io.Writer, cases []engine.Case[T], output string) error {
	infos := engine.Infos(cases)
	switch output {
	case "", OutputText:
		return listText(w, infos)
	case OutputJSON:
		return writeJSON(w, infos)
	}
	return fmt.Errorf("conformance: list format %q is not known; use %q or %q", output, OutputText, OutputJSON)
}

func listText(w io.Writer, cases []engine.Info) error {
	mixed := slices.ContainsFunc(cases, func(c engine.Info) bool { return c.Reach() == engine.Linked })
	var out strings.Builder
	for _, c := range cases {
		fmt.Fprintf(&out, "%-45s ", c.ID)
		if mixed {
			fmt.Fprintf(&out, "%-8s ", c.Reach())
		}
		out.WriteString(c.Promise)
		if needs := c.Needed(); needs != "" {
			fmt.Fprintf(&out, " [needs %s]", needs)
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Reference writes the reference page of the cases about API servers.
func Reference(w io.Writer, cases []engine.Info) error {
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
	for _, system := range systems {
		n, failures := count(cases, system.ID)
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
	_, err := io.WriteString(w, out.String())
	return err
}

// cell is text as a table in Markdown can hold it.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// count returns how many cases a system has, and how many of them are about failure.
func count(cases []engine.Info, system string) (all, failures int) {
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
