package scenarios

import (
	"context"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func getCommand() command {
	return command{
		name:    "get",
		args:    "[-n NAMESPACE] [--resource-version RV] RESOURCE NAME",
		summary: "print an object as YAML",
		details: `Without --resource-version the answer is as new as the store; with 0 it comes
from the watch cache, however old that is.`,
		example: "get configmaps settings",
		prepare: func(flags *pflag.FlagSet) func(context.Context, *session, []string) error {
			namespace := namespaceFlag(flags)
			version := flags.String("resource-version", "", "")
			return func(ctx context.Context, s *session, args []string) error {
				if len(args) != 2 {
					return errUsage
				}
				r, err := s.resource(ctx, args[0])
				if err != nil {
					return err
				}
				client, err := s.client(r, *namespace)
				if err != nil {
					return err
				}
				object, err := client.Get(ctx, args[1], metav1.GetOptions{ResourceVersion: *version})
				if err != nil {
					return err
				}
				object.SetManagedFields(nil)
				text, err := yaml.Marshal(object.Object)
				if err != nil {
					return err
				}
				_, err = s.ts.Stdout().Write(text)
				return err
			}
		},
	}
}
