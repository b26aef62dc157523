package checks

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/scenarios/engine"
)

func (c *Checks) Never() engine.Command {
	return engine.Command{
		Name:    "never",
		Args:    "CODE PATH",
		Asserts: true,
		Summary: "fail if a request for a path was ever answered with that status code",
		Details: `It looks back at every request so far, whoever made it, on all servers of the
script. PATH is compared without the query and includes the paths below it. The
command also fails if there was no request for the path.`,
		Example: "never 404 /apis/example.com/v1",
		Static: func(_ *pflag.FlagSet, args []string) error {
			_, err := statusCode(args[0])
			return err
		},
		Run: func(_ context.Context, args []string) error {
			code, _ := statusCode(args[0])
			return neverAnswered(c.run.Story.Records(), code, args[1])
		},
	}
}

// neverAnswered fails if a request for the path got that code, or if there was none.
func neverAnswered(records []trace.Record, code int, path string) error {
	asked := 0
	for _, rec := range records {
		request, ok := rec.Event.(trace.Request)
		if !ok || request.Phase != trace.End {
			continue
		}
		asking, _, _ := strings.Cut(request.URI, "?")
		if asking != path && !strings.HasPrefix(asking, strings.TrimSuffix(path, "/")+"/") {
			continue
		}
		asked++
		if request.Code == code {
			return fmt.Errorf("%s %s was answered with %d %s by %s at %s", request.Method, request.URI, code, http.StatusText(code), request.Server, rec.Elapsed)
		}
	}
	if asked == 0 {
		return fmt.Errorf("no request has asked for %s", path)
	}
	return nil
}
