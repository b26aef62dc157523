package scenarios

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

var readyzCommand = command{
	name:    "readyz",
	summary: "print the checks of /readyz, one per line: + for ok, - for failing",
	details: `It does not wait, and succeeds whether the server is ready or not.`,
	example: "readyz\nstdout '^- poststarthook/crd-informer-synced$'",
	run: func(ctx context.Context, s *session, args []string) error {
		code, body, err := s.request(ctx, http.MethodGet, "/readyz?verbose", nil, "")
		if err != nil {
			return err
		}
		checks := 0
		for line := range strings.Lines(body) {
			for mark, shown := range map[string]string{"[+]": "+", "[-]": "-"} {
				if text, ok := strings.CutPrefix(line, mark); ok {
					name, _, _ := strings.Cut(text, " ")
					fmt.Fprintln(&s.out, shown, name)
					checks++
				}
			}
		}
		if checks == 0 {
			return fmt.Errorf("/readyz answered %d and no checks: %s", code, strings.TrimSpace(body))
		}
		return nil
	},
}
