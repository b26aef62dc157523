package scenarios

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func deleteCommand() command {
	return command{
		name:    "delete",
		args:    "[-n NAMESPACE] RESOURCE NAME...",
		summary: "delete objects by name",
		details: `It prints a line for each object and does not wait for finalizers.`,
		example: "delete widgets.example.com blue",
		prepare: func(flags *pflag.FlagSet) func(context.Context, *session, []string) error {
			namespace := namespaceFlag(flags)
			return func(ctx context.Context, s *session, args []string) error {
				if len(args) < 2 {
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
				for _, name := range args[1:] {
					if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
						return err
					}
					fmt.Fprintf(s.ts.Stdout(), "%s/%s deleted\n", r.gvr.GroupResource(), name)
				}
				return nil
			}
		},
	}
}

// namespaceFlag declares the flag that names a namespace.
func namespaceFlag(flags *pflag.FlagSet) *string {
	return flags.StringP("namespace", "n", defaultNamespace, "")
}
