package scenarios

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/oidc"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/internal/nearest"
)

var fakeCommand = command{
	name:  "fake",
	args:  "KIND HOST [ANSWERS]",
	least: 2, most: 3,
	summary: "run something that API servers call, at its own host",
	details: fakeDetails(),
	example: "fake admission labels.example.com answers.yaml\napply --expand webhook.yaml",
	run: func(_ context.Context, s *session, args []string) error {
		if err := s.fake(args[0], args[1]); err != nil {
			return err
		}
		if len(args) == 2 {
			return nil
		}
		return s.answer(args[1], args[2])
	},
}

var answerCommand = command{
	name:  "answer",
	args:  "HOST ANSWERS",
	least: 2, most: 2,
	summary: "tell a fake how to answer from now on",
	details: `The first answer in the file whose "when" matches is used, and all answers in the file
take precedence over those that the fake was given earlier.`,
	example:    "answer labels.example.com sick.yaml",
	noNegation: true,
	run:        func(_ context.Context, s *session, args []string) error { return s.answer(args[0], args[1]) },
}

var openCommand = command{
	name:  "open",
	args:  "HOST",
	least: 1, most: 1,
	summary:    "let the requests that a fake holds go on",
	details:    `It opens the gates of all answers with "hold: true", for later requests too.`,
	example:    "open labels.example.com",
	noNegation: true,
	run: func(_ context.Context, s *session, args []string) error {
		found, err := s.fakeAt(args[0])
		if err != nil {
			return err
		}
		if len(found.gates) == 0 {
			return fmt.Errorf("%w: no answer of %s holds anything", errUsage, args[0])
		}
		for _, gate := range found.gates {
			gate.Open()
		}
		found.gates = nil
		return nil
	},
}

var callsCommand = command{
	name:  "calls",
	args:  "HOST",
	least: 1, most: 1,
	summary: "print what a fake has been asked so far",
	details: `It prints a line for each call, in the order in which they arrived.`,
	example: "calls labels.example.com\nstdout '^CREATE configmaps default/a: allowed$'",
	run: func(_ context.Context, s *session, args []string) error {
		found, err := s.fakeAt(args[0])
		if err != nil {
			return err
		}
		for _, call := range found.calls() {
			fmt.Fprintln(&s.out, call)
		}
		return nil
	},
}

// fakeDetails lists the kinds of fakes.
func fakeDetails() string {
	var text strings.Builder
	text.WriteString("KIND is one of\n\n")
	for _, kind := range fakeKinds {
		fmt.Fprintf(&text, "- `%s`: %s.%s\n", kind.name, kind.meaning, about(kind.answers))
	}
	text.WriteString(`
HOST is a DNS name or an IP, on any port, which only the API servers of the script know.
$CA is set to the certificate of the fake, in base64 as in a manifest ("apply --expand").
For kinds that need a file for a flag, the file is put into the script's folder, as
HOST.kubeconfig unless stated otherwise. "cut HOST" cuts the API servers off from the fake.

ANSWERS is a YAML file with a list. Each answer is for the requests that match its
"when", a part of the request, or for all requests; "times" limits how many. It says what
happens: "hold: true" until "open HOST", "delay: 5s", and then at most one of "status:
503", an HTTP status, "break: true", a connection that breaks off, and "answer:", which
is what the API calls the response or the status of the review, unless stated otherwise
above. Without any of these, the fake answers as it does by default.`)
	return text.String()
}

// about is a further sentence, if there is one.
func about(answers string) string {
	if answers == "" {
		return ""
	}
	return " In answers, " + answers + "."
}

// fake is a server that the script runs for the API servers to call.
type fake struct {
	server interface{ Stop(context.Context) error }
	ca     []byte            // in PEM, nil without TLS
	files  map[string][]byte // what flags name, by the extension of the file
	use    func(answer) error
	calls  func() []string
	rotate func(drop bool) error // nil without keys
	issue  func(oidc.Token) (string, error)
	gates  []*stub.Gate // those that are closed
}

// fake runs a fake at a host.
func (s *session) fake(kind, host string) error {
	i := slices.IndexFunc(fakeKinds, func(k fakeKind) bool { return k.name == kind })
	if i < 0 {
		var names []string
		for _, k := range fakeKinds {
			names = append(names, k.name)
		}
		return fmt.Errorf("%w: no kind of fake is called %q%s; there are %s", errUsage, kind, nearest.DidYouMean(kind, names), nearest.Either(names))
	}
	if s.fakes[host] != nil {
		return fmt.Errorf("%w: there is a fake at %s already", errUsage, host)
	}
	d := &door{listener: memnet.Listen()}
	found, err := fakeKinds[i].serve(fakePlace{d.listener, host, s.dialFake})
	if err != nil {
		return err
	}
	s.fakes[host] = found
	s.doors.Store(host, d)
	for extension, content := range found.files {
		if err := os.WriteFile(s.ts.MkAbs(host+extension), content, 0o600); err != nil {
			return err
		}
	}
	if found.ca != nil {
		s.ts.Setenv("CA", base64.StdEncoding.EncodeToString(found.ca))
	}
	return nil
}

func (s *session) fakeAt(host string) (*fake, error) {
	if found := s.fakes[host]; found != nil {
		return found, nil
	}
	hosts := slices.Sorted(maps.Keys(s.fakes))
	return nil, fmt.Errorf("%w: there is no fake at %q%s; run one with: fake KIND %s", errUsage, host, nearest.DidYouMean(host, hosts), host)
}

// stopFakes stops all fakes, in the order of their hosts.
func (s *session) stopFakes(ctx context.Context) error {
	var errs []error
	for _, host := range slices.Sorted(maps.Keys(s.fakes)) {
		for _, gate := range s.fakes[host].gates {
			gate.Open()
		}
		errs = append(errs, s.fakes[host].server.Stop(ctx))
	}
	clear(s.fakes)
	return errors.Join(errs...)
}
