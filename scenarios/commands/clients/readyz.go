package clients

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	"snowglobe.test/scenarios/engine"
)

func (c *Clients) Readyz() engine.Command {
	return engine.Command{
		Name:    "readyz",
		Summary: "print the checks of /readyz, one per line: + for ok, - for failing",
		Details: `It does not wait, and succeeds whether the server is ready or not.`,
		Example: "readyz\nstdout '^- poststarthook/crd-informer-synced$'",
		Run: func(ctx context.Context, args []string) error {
			answer, err := c.Send(ctx, HTTPRequest{Method: http.MethodGet, Path: "/readyz?verbose"})
			if err != nil {
				return err
			}
			checks := 0
			for line := range strings.Lines(string(answer.Body)) {
				for mark, shown := range map[string]string{"[+]": "+", "[-]": "-"} {
					if text, ok := strings.CutPrefix(line, mark); ok {
						name, _, _ := strings.Cut(text, " ")
						fmt.Fprintln(&c.run.Stdout, shown, name)
						checks++
					}
				}
			}
			if checks == 0 {
				return fmt.Errorf("/readyz answered %d and no checks: %s", answer.Code, bytes.TrimSpace(answer.Body))
			}
			return nil
		},
	}
}
