package clients

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/story"
)

func (c *Clients) Exec() engine.Command {
	return engine.Command{
		Name:    "exec",
		Args:    "[-n NAMESPACE] [-c CONTAINER] POD COMMAND...",
		Asserts: true,
		Summary: "run a command in a pod, over SPDY, and print what it writes to stdout and stderr",
		Details: `It fails if the command exits with a code other than 0.`,
		Example: "exec web-0 -- cat /etc/hostname\n! exec web-0 false\nstderr 'exit code 1'",
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			flags.SetInterspersed(false)
			namespace := NamespaceFlag(flags)
			container := flags.StringP("container", "c", "", "")
			return func(ctx context.Context, args []string) error {
				query := url.Values{"command": args[1:], "stdout": {"true"}, "stderr": {"true"}}
				if *container != "" {
					query.Set("container", *container)
				}
				return c.exec(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/exec?%s", *namespace, args[0], query.Encode()))
			}
		},
	}
}

// exec prints what a process writes, and returns how it failed.
func (c *Clients) exec(ctx context.Context, path string) error {
	config, target, err := c.streamTo(path)
	if err != nil {
		return err
	}
	executor, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, target)
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	if ctx.Err() != nil {
		return err // the executor may still be writing
	}
	c.run.Stdout.Write(stdout.Bytes())
	c.run.Stdout.Write(stderr.Bytes())
	return err
}

// streamTo returns what client-go needs for the streams of a request as the script's current user.
func (c *Clients) streamTo(path string) (*rest.Config, *url.URL, error) {
	config, err := c.Config(story.ScriptAgent)
	if err != nil {
		return nil, nil, err
	}
	target, err := url.Parse(config.Host + path)
	return config, target, err
}
