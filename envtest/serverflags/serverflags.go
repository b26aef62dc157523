// Package serverflags knows the flags of the linked kube-apiserver, for programs that pass them on.
// It parses none.
package serverflags

import (
	"io"

	"k8s.io/apiserver/pkg/server/flagz"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// Has reports whether kube-apiserver has a flag of that name, without dashes.
func Has(name string) bool {
	for _, section := range options.NewServerRunOptions().Flags().FlagSets {
		if section.Lookup(name) != nil {
			return true
		}
	}
	return false
}

// Print writes kube-apiserver's own help for its flags, wrapped at this many columns; 0
// means not at all.
func Print(w io.Writer, columns int) {
	cliflag.PrintSections(w, options.NewServerRunOptions().Flags(), columns)
}

// Defaults returns the default of each flag by its name, in the words of /flagz.
func Defaults() map[string]string {
	return flagz.NamedFlagSetsReader{FlagSets: options.NewServerRunOptions().Flags()}.GetFlagz()
}
