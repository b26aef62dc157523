package scenarios

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

var expectCommand = command{
	name:  "expect",
	args:  "[-H HEADER]... PATH CODE [REGEXP]",
	least: 2, most: 3,
	summary: "GET a path and fail unless the answer has that status code",
	details: `If a REGEXP is given, the body must match it too. The body is put into stdout. -H works as
in "request".`,
	example: "expect /apis/example.com/v1/widgets 503",
	prepare: func(flags *pflag.FlagSet) action {
		header := flags.StringArrayP("header", "H", nil, "")
		return func(ctx context.Context, s *session, args []string) error {
			r := httpRequest{method: http.MethodGet, path: args[0]}
			if err := r.addHeader(*header); err != nil {
				return err
			}
			return s.expect(ctx, r, args[1], strings.Join(args[2:], ""))
		}
	},
}

// expect sends a request and judges the answer by its status code and its body.
func (s *session) expect(ctx context.Context, r httpRequest, code, body string) error {
	want, err := statusCode(code)
	if err != nil {
		return err
	}
	match, err := regexp.Compile(body)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	answer, err := s.request(ctx, r)
	if err != nil {
		return err
	}
	fmt.Fprintf(&s.out, "%s\n", answer.body)
	if answer.code != want {
		return fmt.Errorf("GET %s answered %d %s, want %d %s", r.path, answer.code, http.StatusText(answer.code), want, http.StatusText(want))
	}
	if !match.Match(answer.body) {
		return fmt.Errorf("GET %s answered %d, but the body does not match %q", r.path, answer.code, match)
	}
	return nil
}

func statusCode(text string) (int, error) {
	code, err := strconv.Atoi(text)
	if err != nil || code < 100 || code > 599 {
		return 0, fmt.Errorf("%w: %q is not an HTTP status code", errUsage, text)
	}
	return code, nil
}
