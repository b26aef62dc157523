package kubectl

import (
	"regexp"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
)

// harmless are flags that name no file, and start nothing, whatever the words of their usage; and
// two that do so only with a flag that is refused.
var harmless = []string{
	"command", "flatten", "load-restrictor", "local", "merge", "name-only", "patch", "raw", "record", "recursive", "rule", "tail",
	"as-current-user", "helm-command", "profile-output",
}

// TestFlags goes through all flags of all commands that are not refused, and fails for one that
// seems to name a file or a program, and that nobody has looked at.
func TestFlags(t *testing.T) {
	suspicious := regexp.MustCompile(`(?i)\b(files?|filename|path|folder|directory|directories|program|editor|executable|executor)\b`)
	known := slices.Concat(readFlags, writeFlags, []string{output}, harmless)
	seen := map[string]bool{}
	var walk func(command *cobra.Command)
	walk = func(command *cobra.Command) {
		command.InheritedFlags() // joins those of its parents
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			seen[flag.Name] = true
			if suspicious.MatchString(flag.Name+" "+flag.Usage) && !slices.Contains(known, flag.Name) && refuse(command) == nil {
				t.Errorf("%s --%s: %s", command.CommandPath(), flag.Name, flag.Usage)
			}
		})
		for _, sub := range command.Commands() {
			walk(sub)
		}
	}
	walk(cmd.NewKubectlCommand(cmd.KubectlOptions{IOStreams: genericiooptions.NewTestIOStreamsDiscard()}))
	for _, name := range known {
		assert.True(t, seen[name], "kubectl has no flag --%s", name)
	}
}
