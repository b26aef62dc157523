// Package serverflags knows the flags of the linked kube-apiserver, for programs that pass them on.
package serverflags

import (
	"io"
	"slices"

	"github.com/spf13/pflag"
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

// serviceAccount is the admission plugin that some programs turn on for those who say nothing of it.
const serviceAccount = "ServiceAccount"

// WithServiceAccounts returns flags with one more, which enables the admission plugin
// ServiceAccount, unless they say themselves which plugins there are, or that this one is not.
func WithServiceAccounts(flags []string) []string {
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	set.ParseErrorsAllowlist.UnknownFlags = true // they are refused later
	set.Usage = func() {}
	all := set.StringSlice("admission-control", nil, "")
	off := set.StringSlice("disable-admission-plugins", nil, "")
	if err := set.Parse(flags); err != nil || *all != nil || slices.Contains(*off, serviceAccount) {
		return flags
	}
	return append(slices.Clip(flags), "--enable-admission-plugins="+serviceAccount)
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
