//go:build !snowglobe_light

package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // as kubectl has them
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"snowglobe.test/bench"
	"snowglobe.test/cmd/snowglobe/benchmain"
)

// wholeCommands are those that a light build leaves out.
func wholeCommands() []*cobra.Command {
	bench := benchmain.New(benchmain.Exits{Failed: failed, VerdictIf: verdictIf})
	return []*cobra.Command{newConformance(), bench, newAssets()}
}

// playBenchChild measures for the process that has started this one to do so, if one has.
func playBenchChild(ctx context.Context, name string) (code int, ok bool) {
	if !bench.ChildRequested() {
		return 0, false
	}
	return exitCode(os.Stderr, name, failed(bench.Child(ctx, os.Stdin, os.Stdout, os.Stderr))), true
}

const kubectlName = "kubectl"

// playKubectl is kubectl's own main function. The flags of the server that is linked
// beside it are no flags of kubectl's.
func playKubectl() int {
	pflag.CommandLine = pflag.NewFlagSet(kubectlName, pflag.ExitOnError)
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		cmdutil.CheckErr(err)
	}
	return exitOK
}
