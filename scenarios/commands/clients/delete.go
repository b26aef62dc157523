package clients

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/scenarios/engine"
)

func (c *Clients) Delete() engine.Command {
	return engine.Command{
		Name:    "delete",
		Args:    "[-n NAMESPACE] RESOURCE NAME...",
		Asserts: true,
		Names:   c.ResourceAt(1),
		Summary: "delete objects by name",
		Details: `It prints one line per object and does not wait for finalizers.`,
		Example: "delete widgets.example.com blue",
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			namespace := NamespaceFlag(flags)
			return func(ctx context.Context, args []string) error {
				r, client, err := c.clientOf(ctx, args[0], *namespace)
				if err != nil {
					return err
				}
				for _, name := range args[1:] {
					if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
						return err
					}
					fmt.Fprintf(&c.run.Stdout, "%s/%s deleted\n", r.GVR.GroupResource(), name)
				}
				return nil
			}
		},
	}
}
