package checks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"snowglobe.test/scenarios/commands/clients"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
	"snowglobe.test/scenarios/subset"
)

const matchDetails = `For an object, only the wanted fields are compared; for a list, all elements in order, or
just the first ones if the last wanted element is "...". Differences are listed with
their paths.`

func (c *Checks) Assert() engine.Command {
	return engine.Command{
		Name:    "assert",
		Args:    "FILE...",
		Asserts: true,
		Summary: "fail unless the objects in files exist, with at least the fields given there",
		Details: matchDetails,
		Example: "assert widget.yaml\neventually assert status.yaml",
		Files: func(_ *pflag.FlagSet, args []string) []engine.NamedFile {
			return engine.NamedFiles(clients.CheckObjects, args...)
		},
		Run: func(ctx context.Context, args []string) error {
			for _, file := range args {
				text, err := c.run.ReadFile(file)
				if err != nil {
					return err
				}
				objects, err := clients.ReadObjects(text)
				if err != nil {
					return fmt.Errorf("%w: %s: %w", engine.ErrUsage, file, err)
				}
				for _, object := range objects {
					if err := c.assert(ctx, object); err != nil {
						return fmt.Errorf("%s: %s %q: %w", file, object.GetKind(), object.GetName(), err)
					}
				}
			}
			return nil
		},
	}
}

func (c *Checks) Match() engine.Command {
	return engine.Command{
		Name:    "match",
		Args:    "FILE WANT",
		Asserts: true,
		Summary: "fail unless YAML or JSON has at least the fields in another file",
		Details: `Both are files; if FILE is stdout, it is what the last command printed.

` + matchDetails,
		Example: "get configmaps settings\nmatch stdout settings-want.yaml",
		Files:   func(_ *pflag.FlagSet, args []string) []engine.NamedFile { return engine.NamedFiles(checkYAML, args...) },
		Run: func(_ context.Context, args []string) error {
			var is, want any
			for i, into := range []*any{&is, &want} {
				text, err := c.run.ReadFile(args[i])
				if err != nil {
					return err
				}
				if err := script.ReadAnyYAML(text, into); err != nil {
					return fmt.Errorf("%w: %s: %w", engine.ErrUsage, args[i], err)
				}
			}
			return mismatch(is, want)
		},
	}
}

// checkYAML checks that a text is YAML, whatever it says.
func checkYAML(text string) error { return script.ReadAnyYAML(text, new(any)) }

// assert compares an object of the server with the fields that are wanted.
func (c *Checks) assert(ctx context.Context, want *unstructured.Unstructured) error {
	_, client, err := c.clients.ClientOf(ctx, want)
	if err != nil {
		return err
	}
	is, err := client.Get(ctx, want.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	return mismatch(is.Object, want.Object)
}

// mismatch is an error that lists all that differs from what is wanted, nil if nothing does.
func mismatch(is, want any) error {
	if found := subset.Differences(is, want); len(found) > 0 {
		return errors.New("it does not match:\n\t" + strings.Join(found, "\n\t"))
	}
	return nil
}
