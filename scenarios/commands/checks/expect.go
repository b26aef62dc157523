package checks

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"snowglobe.test/scenarios/commands/clients"
	"snowglobe.test/scenarios/engine"
)

func (c *Checks) Expect() engine.Command {
	return engine.Command{
		Name:    "expect",
		Args:    "[-H HEADER]... PATH CODE [REGEXP]",
		Asserts: true,
		Summary: "GET a path and fail unless the answer has that status code",
		Details: `If a REGEXP is given, the body must match it too. The body is put into stdout. -H works as
in "request".`,
		Example: "expect /apis/example.com/v1/widgets 503",
		Static: func(flags *pflag.FlagSet, args []string) error {
			r := clients.HTTPRequest{Path: args[0]}
			if err := r.Check(flags); err != nil {
				return err
			}
			_, _, err := expectation(args[1], strings.Join(args[2:], ""))
			return err
		},
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			header := flags.StringArrayP("header", "H", nil, "")
			return func(ctx context.Context, args []string) error {
				r := clients.HTTPRequest{Method: http.MethodGet, Path: args[0]}
				_ = r.AddHeader(*header) // which Static has checked
				return c.expect(ctx, r, args[1], strings.Join(args[2:], ""))
			}
		},
	}
}

// expect sends a request and judges the answer by its status code and its body.
func (c *Checks) expect(ctx context.Context, r clients.HTTPRequest, code, body string) error {
	want, match, _ := expectation(code, body)
	answer, err := c.clients.Send(ctx, r)
	if err != nil {
		return err
	}
	fmt.Fprintf(&c.run.Stdout, "%s\n", answer.Body)
	if answer.Code != want {
		return fmt.Errorf("GET %s answered %d %s, want %d %s", r.Path, answer.Code, http.StatusText(answer.Code), want, http.StatusText(want))
	}
	if !match.Match(answer.Body) {
		return fmt.Errorf("GET %s answered %d, but the body does not match %q", r.Path, answer.Code, match)
	}
	return nil
}

// expectation reads what the answer should be.
func expectation(code, body string) (int, *regexp.Regexp, error) {
	want, err := statusCode(code)
	if err != nil {
		return 0, nil, err
	}
	match, err := regexp.Compile(body)
	return want, match, engine.Misuse(err)
}

func statusCode(text string) (int, error) {
	code, err := strconv.Atoi(text)
	if err != nil || code < 100 || code > 599 {
		return 0, fmt.Errorf("%w: %q is not an HTTP status code", engine.ErrUsage, text)
	}
	return code, nil
}
