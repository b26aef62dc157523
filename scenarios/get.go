package scenarios

import (
	"context"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// uidVariable is the variable that holds the uid of the last object.
const uidVariable = "UID"

var getCommand = command{
	name:  "get",
	args:  "[-n NAMESPACE] [--resource-version RV] RESOURCE NAME",
	least: 2, most: 2,
	summary: "print an object as YAML",
	details: `It puts the object's resourceVersion into $RV and its uid into $UID. Without
--resource-version the answer is as new as the store; with 0 it comes from the watch
cache, however old that is.`,
	example: "get configmaps settings",
	prepare: func(flags *pflag.FlagSet) action {
		namespace := namespaceFlag(flags)
		version := flags.String("resource-version", "", "")
		return func(ctx context.Context, s *session, args []string) error {
			_, client, err := s.clientOf(ctx, args[0], *namespace)
			if err != nil {
				return err
			}
			object, err := client.Get(ctx, args[1], metav1.GetOptions{ResourceVersion: *version})
			if err != nil {
				return err
			}
			s.ts.Setenv(listVersionVariable, object.GetResourceVersion())
			s.ts.Setenv(uidVariable, string(object.GetUID()))
			return s.printObject(object)
		}
	},
}
