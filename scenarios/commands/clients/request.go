package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/story"
)

func (c *Clients) Request() engine.Command {
	return engine.Command{
		Name:    "request",
		Args:    "[-H HEADER]... [-i] [--expand] [--background NAME] METHOD PATH [FILE]",
		Summary: "send an HTTP request and print the answer",
		Details: `It prints the status code on its own line and then the body; with -i (--include), the
headers between them. FILE is the body to send, as JSON if its name ends in .json and
as YAML otherwise; with --expand, $VARIABLE and ${VARIABLE} in it are expanded. -H
(--header) adds a header, as in -H 'Accept-Encoding: gzip'. The command succeeds if there
was an answer, whatever its status.

With --background it does not wait: the answer becomes the only event of NAME, and its
type is the status code, or ERROR if there is no answer.`,
		Example: "request GET /apis/example.com/v1\nstdout 404\nrequest --background slow GET /version\nnext slow 200",
		Static: func(flags *pflag.FlagSet, args []string) error {
			r := HTTPRequest{Path: args[1]}
			return r.Check(flags)
		},
		Files: func(_ *pflag.FlagSet, args []string) []engine.NamedFile { return engine.NamedFiles(nil, args[2:]...) },
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			header := flags.StringArrayP("header", "H", nil, "")
			include := flags.BoolP("include", "i", false, "")
			expand := flags.Bool("expand", false, "")
			background := flags.String("background", "", "")
			return func(ctx context.Context, args []string) error {
				r := HTTPRequest{Method: args[0], Path: args[1]}
				_ = r.AddHeader(*header) // which Static has checked
				if len(args) == 3 {
					if err := c.addBody(&r, args[2], *expand); err != nil {
						return err
					}
				}
				if *background != "" {
					return c.requestInBackground(*background, r)
				}
				answer, err := c.Send(ctx, r)
				if err != nil {
					return err
				}
				answer.print(&c.run.Stdout, *include)
				return nil
			}
		},
	}
}

const maxBodyBytes = 16 << 20

// HTTPRequest is what a script asks by itself, without a client that knows the API.
type HTTPRequest struct {
	Method, Path string
	Header       http.Header
	body         []byte
	contentType  string
}

// Answer is what it is answered.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Check checks the path, and the headers in the flags of the command.
func (r *HTTPRequest) Check(flags *pflag.FlagSet) error {
	if !strings.HasPrefix(r.Path, "/") {
		return fmt.Errorf("%w: the path %q does not begin with /", engine.ErrUsage, r.Path)
	}
	header, err := flags.GetStringArray("header")
	if err != nil {
		return err
	}
	return r.AddHeader(header)
}

// AddHeader takes lines such as "Accept: application/json".
func (r *HTTPRequest) AddHeader(lines []string) error {
	r.Header = http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return fmt.Errorf("%w: %q is not a header like 'Accept: application/json'", engine.ErrUsage, line)
		}
		r.Header.Add(name, strings.TrimSpace(value))
	}
	return nil
}

// addBody takes the body from a file.
func (c *Clients) addBody(r *HTTPRequest, file string, expand bool) error {
	text, err := c.run.ReadFile(file)
	if err != nil {
		return err
	}
	if expand {
		text = c.run.Expand(text)
	}
	r.body, r.contentType = []byte(text), "application/yaml"
	if strings.HasSuffix(file, ".json") {
		r.contentType = "application/json"
	}
	return nil
}

// send sends the request once, and never again.
func (r HTTPRequest) send(ctx context.Context, config *rest.Config) (answer Answer, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return answer, err
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, config.Host+r.Path, bytes.NewReader(r.body))
	if err != nil {
		return answer, engine.Misuse(err)
	}
	req.Header.Set("Accept", runtime.ContentTypeJSON)
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	maps.Copy(req.Header, r.Header)
	response, err := client.Do(req)
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	if err != nil {
		return answer, fmt.Errorf("%s %s: read the answer: %w", r.Method, r.Path, err)
	}
	return Answer{response.StatusCode, response.Header, content}, nil
}

// Send sends a request as the script's current user.
func (c *Clients) Send(ctx context.Context, r HTTPRequest) (Answer, error) {
	config, err := c.onceConfig(story.ScriptAgent)
	if err != nil {
		return Answer{}, err
	}
	return r.send(ctx, config)
}

// requestInBackground sends a request and lets the script go on.
func (c *Clients) requestInBackground(name string, r HTTPRequest) error {
	return c.Begin(name, func(ctx context.Context, s *Stream) error {
		config, err := c.onceConfig(story.ScriptAgent)
		if err != nil {
			return err
		}
		s.Go(func() {
			answer, err := r.send(ctx, config)
			s.Add(answer.event(err))
		})
		return nil
	})
}

func (a Answer) print(w io.Writer, include bool) {
	fmt.Fprintf(w, "%d\n", a.Code)
	if include {
		for _, name := range slices.Sorted(maps.Keys(a.Header)) {
			for _, value := range a.Header[name] {
				fmt.Fprintf(w, "%s: %s\n", name, value)
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s\n", bytes.TrimSuffix(a.Body, []byte("\n")))
}

// event is the answer as the event of a stream.
func (a Answer) event(err error) Event {
	if err != nil {
		return Event{Kind: watch.Error, Object: &unstructured.Unstructured{Object: map[string]any{"kind": "Status", "message": err.Error()}}}
	}
	event := Event{Kind: watch.EventType(strconv.Itoa(a.Code))}
	var object map[string]any
	if json.Unmarshal(a.Body, &object) == nil {
		event.Object = &unstructured.Unstructured{Object: object}
	}
	return event
}

// isStatusCode reports whether a type of event is the answer to a request.
func isStatusCode(kind watch.EventType) bool {
	code, err := strconv.Atoi(string(kind))
	return err == nil && code >= 100 && code <= 599
}
