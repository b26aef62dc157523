package fakes

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"snowglobe.test/fakes/oidc"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/scenarios/engine"
)

func (f *Fakes) Fake() engine.Command {
	return engine.Command{
		Name:    "fake",
		Args:    "KIND HOST [ANSWERS]",
		Summary: "run something that API servers call, at its own host",
		Details: fakeDetails(),
		Example: "fake admission labels.example.com answers.yaml\napply --expand webhook.yaml",
		Static: func(_ *pflag.FlagSet, args []string) error {
			_, err := fakeKindOf(args[0])
			return err
		},
		Files: func(_ *pflag.FlagSet, args []string) []engine.NamedFile {
			return engine.NamedFiles(checkAnswers, args[2:]...)
		},
		Makes: func(args []string, file string) bool { return strings.HasPrefix(file, args[1]+".") },
		Run: func(_ context.Context, args []string) error {
			if err := f.serve(args[0], args[1]); err != nil {
				return err
			}
			if len(args) == 2 {
				return nil
			}
			return f.answer(args[1], args[2])
		},
	}
}

func (f *Fakes) Answer() engine.Command {
	return engine.Command{
		Name:    "answer",
		Args:    "HOST ANSWERS",
		Summary: "tell a fake how to answer from now on",
		Details: `The first answer in the file whose "when" matches is used, and all answers in the file
take precedence over those that the fake was given earlier.`,
		Example:    "answer labels.example.com sick.yaml",
		NoNegation: true,
		Files: func(_ *pflag.FlagSet, args []string) []engine.NamedFile {
			return engine.NamedFiles(checkAnswers, args[1])
		},
		Run: func(_ context.Context, args []string) error { return f.answer(args[0], args[1]) },
	}
}

func (f *Fakes) Open() engine.Command {
	return engine.Command{
		Name:       "open",
		Args:       "HOST",
		Summary:    "let the requests that a fake holds go on",
		Details:    `It opens the gates of all answers with "hold: true", for later requests too.`,
		Example:    "open labels.example.com",
		NoNegation: true,
		Run: func(_ context.Context, args []string) error {
			found, err := f.fakeAt(args[0])
			if err != nil {
				return err
			}
			if len(found.gates) == 0 {
				return fmt.Errorf("%w: no answer of %s holds anything", engine.ErrUsage, args[0])
			}
			for _, gate := range found.gates {
				gate.Open()
			}
			found.gates = nil
			return nil
		},
	}
}

func (f *Fakes) Calls() engine.Command {
	return engine.Command{
		Name:    "calls",
		Args:    "HOST",
		Summary: "print what a fake has been asked so far",
		Details: `It prints a line for each call, in the order in which they arrived.`,
		Example: "calls labels.example.com\nstdout '^CREATE configmaps default/a: allowed$'",
		Run: func(_ context.Context, args []string) error {
			found, err := f.fakeAt(args[0])
			if err != nil {
				return err
			}
			for _, call := range found.calls() {
				fmt.Fprintln(&f.run.Stdout, call)
			}
			return nil
		},
	}
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

// about makes a sentence of what a kind says about answers, if it says anything.
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
	files  map[string][]byte // files that flags of API servers name, by extension
	use    func(answer) error
	calls  func() []string
	rotate func(drop bool) error // nil without keys
	issue  func(oidc.Token) (string, error)
	gates  []*stub.Gate // those that are closed
}

// fakeKindOf finds a kind by its name.
func fakeKindOf(name string) (found fakeKind, err error) {
	var names []string
	for _, k := range fakeKinds {
		names = append(names, k.name)
		if k.name == name {
			found = k
		}
	}
	return found, engine.CheckName("no kind of fake is called", name, names)
}
