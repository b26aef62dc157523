//go:build snowglobe_light

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"snowglobe.test/internal/light"
)

// kubectlName is a name under which only a whole build has something to do.
const kubectlName = "kubectl"

// playKubectl says so.
func playKubectl() int {
	fmt.Fprintln(os.Stderr, kubectlName+":", light.ErrLeftOut)
	return exitUnjudged
}

// wholeCommands run in the whole program, which has their flags and help too.
func wholeCommands() []*cobra.Command {
	var commands []*cobra.Command
	for name, short := range map[string]string{
		"conformance": "Check what an API server promises, on Snowglobe's stores, stock programs or any cluster",
		"bench":       "Measure how fast a control plane starts and how it fans out watches",
		"assets":      "Make a folder of kube-apiserver, etcd and kubectl for envtest's KUBEBUILDER_ASSETS",
	} {
		commands = append(commands, &cobra.Command{
			Use: name, Short: short, DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, _ []string) error { return runWhole(cmd) },
		})
	}
	return commands
}

// playBenchChild does nothing: no process of a light build measures.
func playBenchChild(context.Context, string) (code int, ok bool) { return 0, false }
