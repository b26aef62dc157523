package scenarios

import (
	"bytes"
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
		answer, err := s.request(ctx, httpRequest{method: http.MethodGet, path: "/readyz?verbose"})
		if err != nil {
			return err
		}
		checks := 0
		for line := range strings.Lines(string(answer.body)) {
			for mark, shown := range map[string]string{"[+]": "+", "[-]": "-"} {
				if text, ok := strings.CutPrefix(line, mark); ok {
					name, _, _ := strings.Cut(text, " ")
					fmt.Fprintln(&s.out, shown, name)
					checks++
				}
			}
		}
		if checks == 0 {
			return fmt.Errorf("/readyz answered %d and no checks: %s", answer.code, bytes.TrimSpace(answer.body))
		}
		return nil
	},
}
