package scenarios

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var expectCommand = command{
	name:  "expect",
	args:  "PATH CODE [REGEXP]",
	least: 2, most: 3,
	summary: "GET a path and fail unless the answer has that status code",
	details: `If a REGEXP is given, the body must match it too. The body lands in stdout.`,
	example: "expect /apis/example.com/v1/widgets 503",
	run: func(ctx context.Context, s *session, args []string) error {
		want, err := statusCode(args[1])
		if err != nil {
			return err
		}
		match, err := regexp.Compile(strings.Join(args[2:], ""))
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		path := args[0]
		answer, err := s.request(ctx, httpRequest{method: http.MethodGet, path: path})
		if err != nil {
			return err
		}
		fmt.Fprintf(&s.out, "%s\n", answer.body)
		if answer.code != want {
			return fmt.Errorf("GET %s answered %d %s, want %d %s", path, answer.code, http.StatusText(answer.code), want, http.StatusText(want))
		}
		if !match.Match(answer.body) {
			return fmt.Errorf("GET %s answered %d, but the body does not match %q", path, answer.code, match)
		}
		return nil
	},
}

func statusCode(text string) (int, error) {
	code, err := strconv.Atoi(text)
	if err != nil || code < 100 || code > 599 {
		return 0, fmt.Errorf("%w: %q is not an HTTP status code", errUsage, text)
	}
	return code, nil
}
