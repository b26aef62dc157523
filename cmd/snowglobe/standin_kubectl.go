package main

import (
	"os"

	"github.com/spf13/pflag"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // as kubectl has them
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

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
