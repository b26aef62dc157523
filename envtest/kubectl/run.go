//go:build !snowglobe_light

package kubectl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubectl/pkg/cmd"

	"snowglobe.test/internal/tempdir"
)

// name is the name of the program, and of its context in a kubeconfig.
const name = "kubectl"

// Run runs the command until it or the context ends; one that waits notices that within a second
// or two, or up to half a minute if the server had not answered before either. The error is what
// kubectl would print before its process exits with an error code, or the context's.
func (c *Cmd) Run(ctx context.Context) error {
	if c.Config == nil {
		return errors.New("a kubectl.Cmd needs a Config")
	}
	folder, err := tempdir.Make("kubectl")
	if err != nil {
		return err
	}
	defer func() { _ = folder.Remove() }()
	home := folder.Path()
	requests := &untilDone{ctx: ctx}
	flags, err := c.flags(requests, home)
	if err != nil {
		return err
	}
	preferences := filepath.Join(home, "kuberc")
	if err := os.WriteFile(preferences, []byte(noPreferences), 0o600); err != nil {
		return err
	}
	args := c.Args
	if os.Getenv("KUBERC") != "off" { // which has the same effect, and refuses the flag
		args = append([]string{"--kuberc=" + preferences}, args...)
	}
	streams := genericiooptions.IOStreams{
		In: cmp.Or[io.Reader](c.Stdin, strings.NewReader("")), Out: cmp.Or(c.Stdout, io.Discard), ErrOut: cmp.Or(c.Stderr, io.Discard),
	}
	root := cmd.NewKubectlCommand(cmd.KubectlOptions{
		Arguments: append([]string{name}, args...), ConfigFlags: flags, IOStreams: streams,
	})
	begin := root.PersistentPreRunE
	root.PersistentPreRunE = func(command *cobra.Command, args []string) error {
		if err := refuse(command); err != nil {
			return err
		}
		if err := c.redirectFiles(command, filepath.Join(home, "stdin")); err != nil {
			return err
		}
		return begin(command, args)
	}
	root.SetArgs(args)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SilenceUsage, root.SilenceErrors = true, true
	err = globals.run(func() error { return root.ExecuteContext(ctx) })
	if ctx.Err() != nil && (err != nil || requests.cut.Load()) {
		return fmt.Errorf("kubectl has not finished: %w", context.Cause(ctx))
	}
	return err
}

// noPreferences is a kuberc in the place of that of whoever runs the test.
const noPreferences = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"

// flags are those with which kubectl reaches the servers of Config. It needs a kubeconfig
// all the same, or it would read that of whoever runs the test.
func (c *Cmd) flags(requests *untilDone, home string) (*genericclioptions.ConfigFlags, error) {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: c.Config.Host, InsecureSkipTLSVerify: true}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	kubeconfig.CurrentContext = name
	file := filepath.Join(home, "config")
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		return nil, err
	}
	flags := genericclioptions.NewConfigFlags(true)
	*flags.KubeConfig, *flags.CacheDir = file, filepath.Join(home, "cache")
	return flags.WithWrapConfigFn(func(asked *rest.Config) *rest.Config {
		config := rest.CopyConfig(c.Config)
		config.Impersonate, config.Timeout = asked.Impersonate, asked.Timeout
		if asked.BearerToken != "" {
			config.BearerToken = asked.BearerToken
		}
		config.Wrap(requests.wrap)
		return config
	}), nil
}
