package engine

import (
	"fmt"
	"io"
	"strings"
)

// WriteUsage writes what one of the commands does, for people to read; without a name it lists
// all of them, one per line.
func WriteUsage(w io.Writer, commands []Command, name string) error {
	for _, c := range commands {
		switch name {
		case "":
			if _, err := fmt.Fprintf(w, "%-12s %s\n", c.Name, c.Summary); err != nil {
				return err
			}
		case c.Name:
			_, err := fmt.Fprintf(w, "%s\n\n%s.\n\n%s\n\nExample:\n\n%s\n", c.Usage(), c.Sentence(), c.Details,
				indent(c.Example))
			return err
		}
	}
	if name == "" {
		return nil
	}
	_, err := find(commands, name)
	return err
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
