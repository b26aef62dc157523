package scenarios

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var deleteCommand = command{
	name:  "delete",
	args:  "[-n NAMESPACE] RESOURCE NAME...",
	least: 2, most: anyNumber,
	summary: "delete objects by name",
	details: `It prints one line per object and does not wait for finalizers.`,
	example: "delete widgets.example.com blue",
	prepare: func(flags *pflag.FlagSet) action {
		namespace := namespaceFlag(flags)
		return func(ctx context.Context, s *session, args []string) error {
			r, client, err := s.clientOf(ctx, args[0], *namespace)
			if err != nil {
				return err
			}
			for _, name := range args[1:] {
				if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
					return err
				}
				fmt.Fprintf(&s.out, "%s/%s deleted\n", r.gvr.GroupResource(), name)
			}
			return nil
		}
	},
}
