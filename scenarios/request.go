package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

var requestCommand = command{
	name:  "request",
	args:  "[-H HEADER]... [-i] [--expand] [--background NAME] METHOD PATH [FILE]",
	least: 2, most: 3,
	summary: "send an HTTP request and print the answer",
	details: `It prints the status code on its own line and then the body; with -i (--include), the
headers between them. FILE is the body to send, as JSON if its name ends in .json and
as YAML otherwise; with --expand, $VARIABLE and ${VARIABLE} in it are expanded. -H
(--header) adds a header, as in -H 'Accept-Encoding: gzip'. The command succeeds if there
was an answer, whatever its status.

With --background it does not wait: the answer becomes the only event of NAME, and its
type is the status code, or ERROR if there is no answer.`,
	example: "request GET /apis/example.com/v1\nstdout 404\nrequest --background slow GET /version\nevent slow 200",
	prepare: func(flags *pflag.FlagSet) action {
		header := flags.StringArrayP("header", "H", nil, "")
		include := flags.BoolP("include", "i", false, "")
		expand := flags.Bool("expand", false, "")
		background := flags.String("background", "", "")
		return func(ctx context.Context, s *session, args []string) error {
			r := httpRequest{method: args[0], path: args[1]}
			if len(args) == 3 {
				s.addBody(&r, args[2], *expand)
			}
			if err := r.addHeader(*header); err != nil {
				return err
			}
			if *background != "" {
				return s.requestInBackground(*background, r)
			}
			answer, err := s.request(ctx, r)
			if err != nil {
				return err
			}
			answer.print(&s.out, *include)
			return nil
		}
	},
}

const maxBodyBytes = 16 << 20

// httpRequest is what a script asks by itself, without a client that knows the API.
type httpRequest struct {
	method, path string
	header       http.Header
	body         []byte
	contentType  string
}

// httpAnswer is what it is answered.
type httpAnswer struct {
	code   int
	header http.Header
	body   []byte
}

// addHeader takes lines such as "Accept: application/json".
func (r *httpRequest) addHeader(lines []string) error {
	r.header = http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return fmt.Errorf("%w: %q is not a header like 'Accept: application/json'", errUsage, line)
		}
		r.header.Add(name, strings.TrimSpace(value))
	}
	return nil
}

// addBody takes the body from a file.
func (s *session) addBody(r *httpRequest, file string, expand bool) {
	text := s.ts.ReadFile(file)
	if expand {
		text = os.Expand(text, s.ts.Getenv)
	}
	r.body, r.contentType = []byte(text), "application/yaml"
	if strings.HasSuffix(file, ".json") {
		r.contentType = "application/json"
	}
}

// configFor returns what the current user's requests are sent with, if this is one.
func (s *session) configFor(r httpRequest) (*rest.Config, error) {
	if !strings.HasPrefix(r.path, "/") {
		return nil, fmt.Errorf("%w: the path %q does not begin with /", errUsage, r.path)
	}
	return s.onceConfig(scriptAgent)
}

// send sends the request once, and never again.
func (r httpRequest) send(ctx context.Context, config *rest.Config) (answer httpAnswer, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return answer, err
	}
	req, err := http.NewRequestWithContext(ctx, r.method, config.Host+r.path, bytes.NewReader(r.body))
	if err != nil {
		return answer, fmt.Errorf("%w: %w", errUsage, err)
	}
	req.Header.Set("Accept", runtime.ContentTypeJSON)
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	response, err := client.Do(req)
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	if err != nil {
		return answer, fmt.Errorf("%s %s: read the answer: %w", r.method, r.path, err)
	}
	return httpAnswer{response.StatusCode, response.Header, content}, nil
}

// request sends a request as the script's current user.
func (s *session) request(ctx context.Context, r httpRequest) (httpAnswer, error) {
	config, err := s.configFor(r)
	if err != nil {
		return httpAnswer{}, err
	}
	return r.send(ctx, config)
}

// requestInBackground sends a request and lets the script go on.
func (s *session) requestInBackground(name string, r httpRequest) error {
	if err := s.free(name); err != nil {
		return err
	}
	config, err := s.configFor(r)
	if err != nil {
		return err
	}
	ctx, cancel := s.background()
	begun := newStream(cancel)
	begun.running.Go(func() {
		answer, err := r.send(ctx, config)
		begun.add(answer.event(err))
	})
	s.streams[name] = begun
	return nil
}

func (a httpAnswer) print(w io.Writer, include bool) {
	fmt.Fprintf(w, "%d\n", a.code)
	if include {
		for _, name := range slices.Sorted(maps.Keys(a.header)) {
			for _, value := range a.header[name] {
				fmt.Fprintf(w, "%s: %s\n", name, value)
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s\n", bytes.TrimSuffix(a.body, []byte("\n")))
}

// event is the answer as the event of a stream.
func (a httpAnswer) event(err error) streamEvent {
	if err != nil {
		return streamEvent{kind: watch.Error, object: &unstructured.Unstructured{Object: map[string]any{"kind": "Status", "message": err.Error()}}}
	}
	event := streamEvent{kind: watch.EventType(strconv.Itoa(a.code))}
	var object map[string]any
	if json.Unmarshal(a.body, &object) == nil {
		event.object = &unstructured.Unstructured{Object: object}
	}
	return event
}

// isStatusCode reports whether a type of event is the answer to a request.
func isStatusCode(kind watch.EventType) bool {
	code, err := strconv.Atoi(string(kind))
	return err == nil && code >= 100 && code <= 599
}
