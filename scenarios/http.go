package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/trace"
)

var requestCommand = command{
	name:  "request",
	args:  "METHOD PATH [FILE]",
	least: 2, most: 3,
	summary: "send an HTTP request and print the answer",
	details: `It prints the status code on a line of its own and then the body. FILE is the
body to send, as JSON if its name ends in .json and as YAML otherwise. Whatever
the status, the command succeeds if there was an answer.`,
	example: "request GET /apis/example.com/v1\nstdout 404",
	run: func(ctx context.Context, s *session, args []string) error {
		var body []byte
		contentType := ""
		if len(args) == 3 {
			body, contentType = []byte(s.ts.ReadFile(args[2])), "application/yaml"
			if strings.HasSuffix(args[2], ".json") {
				contentType = "application/json"
			}
		}
		code, text, err := s.request(ctx, args[0], args[1], body, contentType)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.ts.Stdout(), "%d\n%s\n", code, strings.TrimSuffix(text, "\n"))
		return nil
	},
}

const maxBodyBytes = 16 << 20

// request sends a request as the script's current user.
func (s *session) request(ctx context.Context, method, path string, body []byte, contentType string) (code int, text string, err error) {
	if !strings.HasPrefix(path, "/") {
		return 0, "", fmt.Errorf("%w: the path %q does not begin with /", errUsage, path)
	}
	config, err := s.config(scriptAgent)
	if err != nil {
		return 0, "", err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(ctx, method, config.Host+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", fmt.Errorf("%w: %w", errUsage, err)
	}
	req.Header.Set("Accept", "application/json")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	response, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	if err != nil {
		return 0, "", fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	return response.StatusCode, string(content), nil
}

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
		code, body, err := s.request(ctx, http.MethodGet, path, nil, "")
		if err != nil {
			return err
		}
		fmt.Fprintln(s.ts.Stdout(), body)
		if code != want {
			return fmt.Errorf("GET %s answered %d %s, want %d %s", path, code, http.StatusText(code), want, http.StatusText(want))
		}
		if !match.MatchString(body) {
			return fmt.Errorf("GET %s answered %d, but the body does not match %q", path, code, match)
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

var neverCommand = command{
	name:  "never",
	args:  "CODE PATH",
	least: 2, most: 2,
	summary: "fail if a request for a path was ever answered with that status code",
	details: `It looks back at every request so far, whoever made it, on all servers of the
script. PATH is compared without the query and includes the paths below it. If
there was no request for the path, the command fails too.`,
	example: "never 404 /apis/example.com/v1",
	run: func(_ context.Context, s *session, args []string) error {
		code, err := statusCode(args[0])
		if err != nil {
			return err
		}
		return neverAnswered(s.story.snapshot(), code, args[1])
	},
}

// neverAnswered fails if a request for the path got that code, or if there was
// no request for it.
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
