package clients

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/scenarios/engine"
)

// The variables of the last list: its resourceVersion, and the token of its next page.
const (
	listVersionVariable  = "RV"
	listContinueVariable = "CONTINUE"
)

func (c *Clients) List() engine.Command {
	return engine.Command{
		Name: "list",
		Args: "[-n NAMESPACE | -A] [-l SELECTOR] " +
			"[--resource-version RV [--match Exact|NotOlderThan]] [--limit N] [--continue TOKEN] RESOURCE",
		Asserts: true,
		Names:   c.ResourceAt(1),
		Summary: "print the names of the objects of a resource",
		Details: `It prints one name per line, or NAMESPACE/NAME with -A (--all-namespaces), and puts
the list's resourceVersion into $RV. With --limit it lists one page, and the token for the
next page is in $CONTINUE, which is empty after the last page. Without --resource-version
the list is as new as the store; with 0 it comes from the watch cache, however old that is.`,
		Example: "list --resource-version 0 configmaps",
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			namespace := NamespaceFlag(flags)
			all := flags.BoolP("all-namespaces", "A", false, "")
			var opts metav1.ListOptions
			flags.StringVarP(&opts.LabelSelector, "selector", "l", "", "")
			flags.StringVar(&opts.ResourceVersion, "resource-version", "", "")
			flags.Int64Var(&opts.Limit, "limit", 0, "")
			flags.StringVar(&opts.Continue, "continue", "", "")
			match := flags.String("match", "", "")
			return func(ctx context.Context, args []string) error {
				opts.ResourceVersionMatch = metav1.ResourceVersionMatch(*match)
				if *all {
					*namespace = metav1.NamespaceAll
				}
				return c.list(ctx, args[0], *namespace, opts)
			}
		},
	}
}

func (c *Clients) list(ctx context.Context, name, namespace string, opts metav1.ListOptions) error {
	r, client, err := c.clientOf(ctx, name, namespace)
	if err != nil {
		return err
	}
	list, err := client.List(ctx, opts)
	if err != nil {
		return err
	}
	c.run.Setenv(listVersionVariable, list.GetResourceVersion())
	c.run.Setenv(listContinueVariable, list.GetContinue())
	for _, item := range list.Items {
		shown := item.GetName()
		if r.Namespaced && namespace == metav1.NamespaceAll {
			shown = item.GetNamespace() + "/" + shown
		}
		fmt.Fprintln(&c.run.Stdout, shown)
	}
	return nil
}
