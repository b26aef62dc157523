package scenarios

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/yaml"
)

// The events of a controller, besides END.
const (
	reconciledEvent watch.EventType = "RECONCILED"
	failedEvent     watch.EventType = "FAILED"
)

// controllerAgent is the user agent of the script's controllers.
const controllerAgent = "script-controller"

var controllerCommand = command{
	name:  "controller",
	args:  "[-n NAMESPACE | -A] NAME RESOURCE RULES",
	least: 3, most: 3,
	summary: "run a small controller in the background, which follows a table of rules",
	details: `It has an informer and a work queue, as controllers do: it reads from its cache, which may
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

In all texts, ${PATH} is a field of the object, as in ${metadata.name}. "event" takes
RECONCILED when the controller did something, and FAILED when it could not; the story says
why. "cached" looks into its cache, and "unwatch" ends it. It keeps using the user and path
that are current when it starts.`,
	example: "controller colors widgets rules.yaml\napply widget.yaml\nevent colors RECONCILED default/blue",
	prepare: func(flags *pflag.FlagSet) action {
		namespace := namespaceFlag(flags)
		all := flags.BoolP("all-namespaces", "A", false, "")
		return func(ctx context.Context, s *session, args []string) error {
			var rules []reconcileRule
			if err := yaml.UnmarshalStrict([]byte(s.ts.ReadFile(args[2])), &rules); err != nil {
				return fmt.Errorf("%w: %s: %w", errUsage, args[2], err)
			}
			for i, rule := range rules {
				if err := rule.validate(); err != nil {
					return fmt.Errorf("%w: %s: rule %d: %w", errUsage, args[2], i+1, err)
				}
			}
			r, err := s.resource(ctx, args[1])
			if err != nil {
				return err
			}
			if *all || !r.namespaced {
				*namespace = metav1.NamespaceAll
			}
			return s.control(ctx, args[0], r, *namespace, rules)
		}
	},
}

// control runs a controller under a name, as the user and by the path of now.
func (s *session) control(ctx context.Context, name string, r apiResource, namespace string, rules []reconcileRule) error {
	if err := s.free(name); err != nil {
		return err
	}
	config, err := s.config(controllerAgent)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	known, err := s.resources(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := s.background()
	informer := dynamicinformer.NewFilteredDynamicInformer(client, r.gvr, namespace, 0, cache.Indexers{}, nil).Informer()
	begun := newStream(cancel)
	begun.informer = informer
	c := &controller{
		name: name, rules: rules, resource: r, known: known, client: client, cache: informer.GetStore(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstBackoff, lastBackoff)),
		tell:  func(event streamEvent) { begun.add(event) },
		note:  func(text string) { s.story.addLine(noteLine, text) },
	}
	if _, err := informer.AddEventHandler(c.handler()); err != nil {
		cancel()
		return err
	}
	begun.running.Go(func() { informer.RunWithContext(ctx) })
	begun.running.Go(func() { c.run(ctx, informer.HasSynced) })
	begun.running.Go(func() {
		<-ctx.Done()
		c.queue.ShutDown()
	})
	s.streams[name] = begun
	return nil
}

// The pauses of a controller that fails, as those of workqueue.DefaultTypedControllerRateLimiter.
const (
	firstBackoff = 5 * time.Millisecond
	lastBackoff  = 1000 * time.Second
)
