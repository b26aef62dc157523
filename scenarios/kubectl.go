package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"snowglobe.test/envtest/kubectl"
)

// kubectlName is the name of the command and of its user agent.
const kubectlName = "kubectl"

var kubectlCommand = command{
	name:  kubectlName,
	args:  "[ARGUMENT]...",
	least: 0, most: anyNumber,
	summary: "run kubectl, of the same release as the API server, in this process",
	details: `It uses the current user and path, and reads no configuration other than its flags. Files
named by flags such as -f are those of the script. It has no plugins, cannot read from a
terminal, and has none of the commands that need more than requests, such as exec,
port-forward, edit and diff: see logs, run and forward. "auth can-i" would end the process
to say no; apply a SelfSubjectAccessReview instead.`,
	example:  "kubectl apply -f widget.yaml\nkubectl wait --for=condition=Ready widget/blue\n! kubectl get widget red\nstderr NotFound",
	onServer: true,
	verbatim: true,
	run:      func(ctx context.Context, s *session, args []string) error { return s.kubectl(ctx, args) },
}

// kubectl runs kubectl in the folder of the script.
func (s *session) kubectl(ctx context.Context, args []string) error {
	config, err := s.config(kubectlName)
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	err = (&kubectl.Cmd{Config: config, Args: args, Dir: s.ts.MkAbs("."), Stdout: &stdout, Stderr: &stderr}).Run(ctx)
	_, _ = stdout.WriteTo(&s.out)
	if warnings := strings.TrimSpace(stderr.String()); warnings != "" && err == nil {
		fmt.Fprintln(s.ts.Stderr(), warnings)
	}
	if errors.Is(err, kubectl.ErrRefused) {
		return fmt.Errorf("%w: %w", errUsage, err) // a mistake in the script, even after "!"
	}
	return err
}
