package scenarios

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The variables of the last list: its resourceVersion, and the token of its next page.
const (
	listVersionVariable  = "RV"
	listContinueVariable = "CONTINUE"
)

var listCommand = command{
	name:  "list",
	args:  "[-n NAMESPACE | -A] [-l SELECTOR] [--resource-version RV [--match Exact|NotOlderThan]] [--limit N] [--continue TOKEN] RESOURCE",
	least: 1, most: 1,
	summary: "print the names of the objects of a resource",
	details: `It prints one name per line, or NAMESPACE/NAME with -A (--all-namespaces), and puts
the list's resourceVersion into $RV. With --limit it lists one page, and the token for the
next page is in $CONTINUE, which is empty after the last page. Without --resource-version
the list is as new as the store; with 0 it comes from the watch cache, however old that is.`,
	example: "list --resource-version 0 configmaps",
	prepare: func(flags *pflag.FlagSet) action {
		namespace := namespaceFlag(flags)
		all := flags.BoolP("all-namespaces", "A", false, "")
		var opts metav1.ListOptions
		flags.StringVarP(&opts.LabelSelector, "selector", "l", "", "")
		flags.StringVar(&opts.ResourceVersion, "resource-version", "", "")
		flags.Int64Var(&opts.Limit, "limit", 0, "")
		flags.StringVar(&opts.Continue, "continue", "", "")
		match := flags.String("match", "", "")
		return func(ctx context.Context, s *session, args []string) error {
			opts.ResourceVersionMatch = metav1.ResourceVersionMatch(*match)
			if *all {
				*namespace = metav1.NamespaceAll
			}
			return s.list(ctx, args[0], *namespace, opts)
		}
	},
}

func (s *session) list(ctx context.Context, name, namespace string, opts metav1.ListOptions) error {
	r, client, err := s.clientOf(ctx, name, namespace)
	if err != nil {
		return err
	}
	list, err := client.List(ctx, opts)
	if err != nil {
		return err
	}
	s.ts.Setenv(listVersionVariable, list.GetResourceVersion())
	s.ts.Setenv(listContinueVariable, list.GetContinue())
	for _, item := range list.Items {
		shown := item.GetName()
		if r.namespaced && namespace == metav1.NamespaceAll {
			shown = item.GetNamespace() + "/" + shown
		}
		fmt.Fprintln(&s.out, shown)
	}
	return nil
}
