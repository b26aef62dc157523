//go:build !snowglobe_light

package kubectl

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// refusal says what can't be run here, and what it would do or need.
type refusal struct {
	command string // a path, or empty for every command
	when    func(*pflag.FlagSet) bool
	what    string // more of the command, for the message
	reason  string
}

var refused = []refusal{
	{"", profiles, " with --profile", "measures all of this process, and would have Ctrl-C end it"},
	{"kubectl __complete", always, "", runsProgram},
	{"kubectl apply edit-last-applied", always, "", startsEditor},
	{"kubectl attach", always, "", needsSocket},
	{"kubectl auth can-i", without("list"), "", "would end the process to say no; create a SelfSubjectAccessReview instead"},
	{"kubectl cp", always, "", needsSocket},
	{"kubectl create", with("edit"), " --edit", startsEditor},
	{"kubectl debug", always, "", needsSocket},
	{"kubectl diff", always, "", runsProgram},
	{"kubectl edit", always, "", startsEditor},
	{"kubectl exec", always, "", needsSocket},
	{"kubectl kustomize", with("enable-alpha-plugins"), " --enable-alpha-plugins", runsProgram},
	{"kubectl kustomize", with("enable-helm"), " --enable-helm", runsProgram},
	{"kubectl port-forward", always, "", needsSocket},
	{"kubectl proxy", always, "", needsSocket},
	{"kubectl run", attaches, " --attach", needsSocket},
	{"kubectl version", always, "", `has no version of its own to tell; "get --raw /version" tells the server's`},
}

const (
	needsSocket  = "needs a network connection of its own, and here there are only requests"
	runsProgram  = "runs another program"
	startsEditor = "starts an editor; apply or patch instead"
)

// refuse returns an error for a command that can't be run with the flags that it has.
func refuse(command *cobra.Command) error {
	for _, r := range refused {
		if (r.command == "" || r.command == command.CommandPath()) && r.when(command.Flags()) {
			return fmt.Errorf("%s%s %s: %w", command.CommandPath(), r.what, r.reason, ErrRefused)
		}
	}
	return nil
}

func always(*pflag.FlagSet) bool { return true }

func with(name string) func(*pflag.FlagSet) bool {
	return func(flags *pflag.FlagSet) bool { return flags.Lookup(name).Value.String() == "true" }
}

func without(name string) func(*pflag.FlagSet) bool {
	return func(flags *pflag.FlagSet) bool { return !with(name)(flags) }
}

// attaches reports whether run attaches to what it creates, which it does for --stdin too.
func attaches(flags *pflag.FlagSet) bool {
	return with("attach")(flags) || with("stdin")(flags) && !flags.Changed("attach")
}

func profiles(flags *pflag.FlagSet) bool { return flags.Lookup("profile").Value.String() != "none" }
