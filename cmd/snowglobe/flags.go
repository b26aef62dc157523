package main

import "github.com/spf13/pflag"

// hideForeignFlags removes the flags, --version among them, that Kubernetes libraries
// register in every program that links them: cobra would treat them as ours. The
// returned function restores them, because the chain needs them when it starts.
func hideForeignFlags() (restore func()) {
	theirs := pflag.CommandLine
	pflag.CommandLine = pflag.NewFlagSet("snowglobe", pflag.ContinueOnError)
	return func() { pflag.CommandLine = theirs }
}
