package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/engine"
)

// eventTypes are those that "next" waits for.
var eventTypes = []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error, Leading, Lost, Reconciled, Failed, Line, End}

func (c *Clients) Next() engine.Command {
	return engine.Command{
		Name:     "next",
		Formerly: "event",
		Args:     "NAME TYPE [OBJECT|REASON|LINE]",
		Asserts:  true,
		Summary: "take the next event of a watch, an informer, a candidate or a controller, and " +
			"fail unless it is the given one",
		Details: `It waits for the event, and prints its object as YAML. The types are ADDED, MODIFIED and
DELETED; for a watch also BOOKMARK, ERROR, with a reason such as Expired, and END; for a
candidate LEADING, LOST and END; for a controller RECONCILED and FAILED; for a log LINE
and END; for a request in the background the status code of its answer, or ERROR. OBJECT
is NAME or NAMESPACE/NAME.`,
		Example: "next settings MODIFIED default/a\nstdout 'color: red'\nnext settings ERROR Expired\nnext settings END",
		Static:  func(_ *pflag.FlagSet, args []string) error { return checkEventType(watch.EventType(args[1])) },
		Run: func(ctx context.Context, args []string) error {
			kind := watch.EventType(args[1])
			stream, err := c.stream(args[0])
			if err != nil {
				return err
			}
			event, err := stream.next(ctx)
			if err != nil {
				return err
			}
			if err := c.printObject(event.Object); err != nil {
				return err
			}
			if event.Kind == kind && (len(args) == 2 || event.is(args[2])) {
				return nil
			}
			return fmt.Errorf("the next event of %s is %s, want %s", args[0], event, strings.Join(args[1:], " "))
		},
	}
}

func checkEventType(kind watch.EventType) error {
	if !slices.Contains(eventTypes, kind) && !isStatusCode(kind) {
		return fmt.Errorf("%w: no event is of type %q; the types are %s", engine.ErrUsage, kind, nearest.Either(eventTypes))
	}
	return nil
}

// printObject prints an object, without its managed fields, as YAML. Nil is nothing.
func (c *Clients) printObject(object *unstructured.Unstructured) error {
	if object == nil {
		return nil
	}
	object.SetManagedFields(nil)
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return err
	}
	c.run.Stdout.Write(text)
	return nil
}
