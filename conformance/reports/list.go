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
