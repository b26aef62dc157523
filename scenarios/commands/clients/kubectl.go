package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"snowglobe.test/envtest/kubectl"
	"snowglobe.test/internal/light"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/story"
)

func (c *Clients) Kubectl() engine.Command {
	return engine.Command{
		Name:    story.KubectlAgent,
		Args:    "[ARGUMENT]...",
		Asserts: true,
		Summary: "run kubectl, of the same release as the API server, in this process",
		Details: `It uses the current user and path, and reads no configuration other than its flags. Files
named by flags such as -f are those of the script. It has no plugins, cannot read from a
terminal, and has none of the commands that need more than requests, such as exec,
port-forward, edit and diff: see logs, exec and port-forward. "auth can-i" would end the process
to say no; apply a SelfSubjectAccessReview instead.`,
		Example:  "kubectl apply -f widget.yaml\nkubectl wait --for=condition=Ready widget/blue\n! kubectl get widget red\nstderr NotFound",
		Needs:    c.servers.Running,
		Verbatim: true,
		LeftOut:  light.Build,
		Run:      func(ctx context.Context, args []string) error { return c.kubectl(ctx, args) },
	}
}

// kubectl runs kubectl in the folder of the script.
func (c *Clients) kubectl(ctx context.Context, args []string) error {
	config, err := c.Config(story.KubectlAgent)
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	err = (&kubectl.Cmd{Config: config, Args: args, Dir: c.run.Path("."), Stdout: &stdout, Stderr: &stderr}).Run(ctx)
	_, _ = stdout.WriteTo(&c.run.Stdout)
	if warnings := strings.TrimSpace(stderr.String()); warnings != "" && err == nil {
		fmt.Fprintln(&c.run.Stderr, warnings)
	}
	if errors.Is(err, kubectl.ErrRefused) {
		return engine.Misuse(err) // a mistake in the script, even after "!"
	}
	return err
}
