package main

import "github.com/spf13/pflag"

// hideForeignFlags puts away the flags that the libraries of Kubernetes register
// for every program that links them, a --version among them: cobra takes them
// for flags of ours. The function returned puts them back; the chain looks for
// them when it starts.
func hideForeignFlags() (restore func()) {
	theirs := pflag.CommandLine
	pflag.CommandLine = pflag.NewFlagSet("snowglobe", pflag.ContinueOnError)
	return func() { pflag.CommandLine = theirs }
}
