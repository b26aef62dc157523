package scenarios

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var getCommand = command{
	name:  "get",
	args:  "[-n NAMESPACE] [--resource-version RV] RESOURCE NAME",
	least: 2, most: 2,
	summary: "print an object as YAML",
	details: `Without --resource-version the answer is as new as the store; with 0 it comes
from the watch cache, however old that is.`,
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

// listVersionVariable is the variable that holds the resourceVersion of the
// last list.
const listVersionVariable = "RV"

var listCommand = command{
	name:  "list",
	args:  "[-n NAMESPACE | -A] [-l SELECTOR] [--resource-version RV [--match Exact|NotOlderThan]] RESOURCE",
	least: 1, most: 1,
	summary: "print the names of the objects of a resource",
	details: `It prints one name per line, or NAMESPACE/NAME with -A (--all-namespaces), and puts
the list's resourceVersion into $RV. Without --resource-version the list is as
new as the store; with 0 it comes from the watch cache, however old that is.`,
	example: "list --resource-version 0 configmaps",
	prepare: func(flags *pflag.FlagSet) action {
		namespace := namespaceFlag(flags)
		all := flags.BoolP("all-namespaces", "A", false, "")
		var opts metav1.ListOptions
		flags.StringVarP(&opts.LabelSelector, "selector", "l", "", "")
		flags.StringVar(&opts.ResourceVersion, "resource-version", "", "")
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
	for _, item := range list.Items {
		shown := item.GetName()
		if r.namespaced && namespace == metav1.NamespaceAll {
			shown = item.GetNamespace() + "/" + shown
		}
		fmt.Fprintln(s.ts.Stdout(), shown)
	}
	return nil
}

var deleteCommand = command{
	name:  "delete",
	args:  "[-n NAMESPACE] RESOURCE NAME...",
	least: 2, most: anyNumber,
	summary: "delete objects by name",
	details: `It prints a line for each object and does not wait for finalizers.`,
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
				fmt.Fprintf(s.ts.Stdout(), "%s/%s deleted\n", r.gvr.GroupResource(), name)
			}
			return nil
		}
	},
}

func namespaceFlag(flags *pflag.FlagSet) *string {
	return flags.StringP("namespace", "n", defaultNamespace, "")
}
