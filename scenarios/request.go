package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
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
		fmt.Fprintf(&s.out, "%d\n%s\n", code, strings.TrimSuffix(text, "\n"))
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
	req.Header.Set("Accept", runtime.ContentTypeJSON)
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
