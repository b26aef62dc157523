package engine

import (
	"fmt"
	"io"
	"strings"

	"snowglobe.test/internal/nearest"
)

// WriteUsage writes what one of the verbs does, for people to read; without a name it lists
// all of them, one per line.
func WriteUsage(w io.Writer, verbs []Verb, name string) error {
	var names []string
	for _, v := range verbs {
		names = append(names, v.Name)
		switch name {
		case "":
			if _, err := fmt.Fprintf(w, "%-12s %s\n", v.Name, v.Summary); err != nil {
				return err
			}
		case v.Name:
			_, err := fmt.Fprintf(w, "%s\n\n%s.\n\n%s\n\nExample:\n\n%s\n", v.Usage(), v.Sentence(), v.Details, indent(v.Example))
			return err
		}
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("scripts have no command %q%s", name, nearest.DidYouMean(name, names))
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
