package clients

import (
	"context"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/scenarios/engine"
)

// uidVariable is the variable that holds the uid of the last object.
const uidVariable = "UID"

func (c *Clients) Get() engine.Command {
	return engine.Command{
		Name:    "get",
		Args:    "[-n NAMESPACE] [--resource-version RV] RESOURCE NAME",
		Asserts: true,
		Names:   c.ResourceAt(1),
		Summary: "print an object as YAML",
		Details: `It puts the object's resourceVersion into $RV and its uid into $UID. Without
--resource-version the answer is as new as the store; with 0 it comes from the watch
cache, however old that is.`,
		Example: "get configmaps settings",
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			namespace := NamespaceFlag(flags)
			version := flags.String("resource-version", "", "")
			return func(ctx context.Context, args []string) error {
				_, client, err := c.clientOf(ctx, args[0], *namespace)
				if err != nil {
					return err
				}
				object, err := client.Get(ctx, args[1], metav1.GetOptions{ResourceVersion: *version})
				if err != nil {
					return err
				}
				c.run.Setenv(listVersionVariable, object.GetResourceVersion())
				c.run.Setenv(uidVariable, string(object.GetUID()))
				return c.printObject(object)
			}
		},
	}
}
