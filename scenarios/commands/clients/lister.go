package clients

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"snowglobe.test/scenarios/engine"
)

func (c *Clients) Lister() engine.Command {
	return engine.Command{
		Name:     "lister",
		Formerly: "cached",
		Args:     "INFORMER [OBJECT]",
		Asserts:  true,
		Summary:  "look into the cache of an informer, as a controller's lister does",
		Details: `It prints the keys of all objects, sorted, or the OBJECT as YAML, which is NAME or
NAMESPACE/NAME. It fails if the informer has not synced yet, or has no such object.`,
		Example: "lister widgets default/blue\nstdout 'color: blue'",
		Run: func(_ context.Context, args []string) error {
			stream, err := c.stream(args[0])
			if err != nil {
				return err
			}
			if stream.informer == nil {
				return fmt.Errorf("%w: %q is a watch, which has no cache; begin an informer", engine.ErrUsage, args[0])
			}
			if !stream.informer.HasSynced() {
				return fmt.Errorf("the informer %q has not synced yet", args[0])
			}
			store := stream.informer.GetStore()
			if len(args) == 1 {
				for _, key := range slices.Sorted(slices.Values(store.ListKeys())) {
					fmt.Fprintln(&c.run.Stdout, key)
				}
				return nil
			}
			for _, key := range []string{args[1], DefaultNamespace + "/" + args[1]} {
				if found, exists, _ := store.GetByKey(key); exists {
					return c.printObject(found.(*unstructured.Unstructured).DeepCopy())
				}
			}
			return fmt.Errorf("the informer %q has no object %q", args[0], args[1])
		},
	}
}
