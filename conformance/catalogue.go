package conformance

import (
	"fmt"
	"io"
	"strings"
)

// systems are the parts of the server that cases test.
var systems = []struct{ id, name string }{
	{"S1", "server chain"},
	{"S6", "watch cache"},
	{"S8", "authorization"},
	{"S9", "admission"},
	{"S10", "apiextensions server"},
	{"S11", "CRD sync signal and not-found handler"},
	{"S12", "kube-apiserver and its REST storage"},
	{"S13", "bootstrap controllers"},
	{"S14", "aggregator"},
	{"S15", "health checks"},
	{"S16", "run: hooks and signals"},
	{"S18", "discovery"},
	{"S20", "version"},
}

// List writes all cases, as "text", "json" or "markdown".
func List(w io.Writer, output string) error {
	switch output {
	case "", OutputText:
		return listText(w)
	case OutputJSON:
		return writeJSON(w, Cases())
	case OutputMarkdown:
		return listMarkdown(w)
	}
	return fmt.Errorf("conformance: list format %q is not known; use %q, %q or %q", output, OutputText, OutputJSON, OutputMarkdown)
}

func listText(w io.Writer) error {
	var out strings.Builder
	for _, c := range Cases() {
		fmt.Fprintf(&out, "%-45s %s", c.ID, c.Promise)
		if c.Needs != (Needs{}) {
			fmt.Fprintf(&out, " [needs %s]", c.Needs)
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// listMarkdown writes the reference page.
func listMarkdown(w io.Writer) error {
	var out strings.Builder
	cases := Cases()
	fmt.Fprintf(&out, `# Conformance cases

<!-- Generated: go test ./conformance -run TestPageIsFresh -update -->

%d promises of an API server, each with a test. Run them against a control plane of Snowglobe, or
against any cluster of the linked release:

    snowglobe conformance
    snowglobe conformance --store embedded
    snowglobe conformance --kubeconfig FILE

The first part of an ID is the system that makes the promise.

| system | is |
| --- | --- |
`, len(cases))
	for _, system := range systems {
		fmt.Fprintf(&out, "| %s | %s |\n", system.id, system.name)
	}
	area := Area("")
	for _, c := range cases {
		if c.Area != area {
			area = c.Area
			fmt.Fprintf(&out, "\n## %s\n\n| case | promise | needs |\n| --- | --- | --- |\n", area)
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", c.ID, strings.ReplaceAll(c.Promise, "|", `\|`), c.Needs)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
