package scenarios

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"snowglobe.test/envtest/trace"
)

var neverCommand = command{
	name:  "never",
	args:  "CODE PATH",
	least: 2, most: 2,
	summary: "fail if a request for a path was ever answered with that status code",
	details: `It looks back at every request so far, whoever made it, on all servers of the
script. PATH is compared without the query and includes the paths below it. The
command also fails if there was no request for the path.`,
	example: "never 404 /apis/example.com/v1",
	run: func(_ context.Context, s *session, args []string) error {
		code, err := statusCode(args[0])
		if err != nil {
			return err
		}
		return neverAnswered(s.story.snapshot(), code, args[1])
	},
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
		return fmt.Errorf("nobody has asked for %s", path)
	}
	return nil
}
