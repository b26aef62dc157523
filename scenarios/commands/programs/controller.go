package programs

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"snowglobe.test/scenarios/commands/clients"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

// controllerAgent is the user agent of the script's controllers.
const controllerAgent = "script-controller"

func (p *Programs) Controller() engine.Command {
	return engine.Command{
		Name:    "controller",
		Args:    "[-n NAMESPACE | -A] NAME RESOURCE RULES",
		Names:   p.clients.ResourceAt(2),
		Summary: "run a small controller in the background, which follows a table of rules",
		Details: `It has an informer and a work queue, as controllers do: it reads from its cache, which may
be stale, and retries after an error, with client-go's backoff.

RULES is a YAML file with a list of rules. For each object, the first rule applies whose
"when", a part of the object, matches and whose "unless" does not. A rule with "deleting:
true" is for objects that are being deleted; all others are for objects that are not. A
rule has one of

- "patch:" a merge patch of the object
- "status:" a merge patch of its status
- "apply:" another object, which is applied and owned by this one
- "finalize: NAME" to remove that finalizer
- "delete: true"

In all texts, ${PATH} is a field of the object, as in ${metadata.name}. "next" takes
RECONCILED when the controller did something, and FAILED when it could not; the story says
why. "lister" looks into its cache, and "unwatch" ends it. It keeps using the user and path
that are current when it starts.`,
		Example: "controller colors widgets rules.yaml\napply widget.yaml\nnext colors RECONCILED default/blue",
		Files: func(_ *pflag.FlagSet, args []string) []engine.NamedFile {
			return engine.NamedFiles(script.ListCheck[reconcileRule]("rule"), args[2])
		},
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			namespace := clients.NamespaceFlag(flags)
			all := flags.BoolP("all-namespaces", "A", false, "")
			return func(ctx context.Context, args []string) error {
				text, err := p.run.ReadFile(args[2])
				if err != nil {
					return err
				}
				rules, err := script.ReadList[reconcileRule](text, "rule")
				if err != nil {
					return fmt.Errorf("%w: %s: %w", engine.ErrUsage, args[2], err)
				}
				r, err := p.clients.Resource(ctx, args[1])
				if err != nil {
					return err
				}
				if *all || !r.Namespaced {
					*namespace = metav1.NamespaceAll
				}
				return p.control(ctx, args[0], r, *namespace, rules)
			}
		},
	}
}

// control runs a controller under a name, as the user and by the path of now.
func (p *Programs) control(ctx context.Context, name string, r clients.Resource, namespace string, rules []reconcileRule) error {
	return p.clients.Begin(name, func(running context.Context, s *clients.Stream) error {
		client, err := p.clients.Dynamic(controllerAgent)
		if err != nil {
			return err
		}
		known, err := p.clients.Resources(ctx)
		if err != nil {
			return err
		}
		informer := dynamicinformer.NewFilteredDynamicInformer(client, r.GVR, namespace, 0, cache.Indexers{}, nil).Informer()
		c := &controller{
			name: name, rules: rules, resource: r, known: known, client: client, cache: informer.GetStore(),
			queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstBackoff, lastBackoff)),
			tell:  s.Add, note: p.run.Story.Note,
		}
		if _, err := informer.AddEventHandler(c.handler()); err != nil {
			return err
		}
		s.Inform(running, informer)
		s.Go(func() { c.run(running, informer.HasSynced) })
		s.Go(func() {
			<-running.Done()
			c.queue.ShutDown()
		})
		return nil
	})
}

// The pauses of a controller that fails, as those of workqueue.DefaultTypedControllerRateLimiter.
const (
	firstBackoff = 5 * time.Millisecond
	lastBackoff  = 1000 * time.Second
)
