package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/script"
)

func newScenario() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scenario",
		Short: "Write, check and describe scenario scripts",
		Long: `Write, check and describe scenario scripts. SCRIPT is a file, a folder of scripts, or
the name of a script in the library. To run them, use "snowglobe run".`,
		Example: `  snowglobe scenario new race.txtar
  snowglobe scenario commands watch
  snowglobe scenario lint race.txtar
  snowglobe scenario describe stale-read`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newScenarioNew(), newScenarioFmt(), newScenarioLint(), newScenarioList(), newScenarioDescribe(), newScenarioCommands())
	return cmd
}

// withScripts calls run with the scripts that the arguments stand for.
func withScripts(run func(*cobra.Command, []script.Script) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		scripts, err := scenarios.Find(args...)
		if err != nil {
			return failed(err)
		}
		return run(cmd, scripts)
	}
}

func newScenarioNew() *cobra.Command {
	return &cobra.Command{
		Use:     "new FILE",
		Short:   "Write a new script, which already runs, for you to change",
		Example: `  snowglobe scenario new race.txtar && snowglobe run race.txtar`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if errors.Is(err, fs.ErrExist) {
				return failed(fmt.Errorf("new script: %s is there already; name another file", args[0]))
			}
			if err != nil {
				return failed(fmt.Errorf("new script: %w", onDisk(args[0], err)))
			}
			_, err = file.Write(script.Template())
			if err := errors.Join(err, file.Close()); err != nil {
				return failed(fmt.Errorf("new script: %w", onDisk(args[0], err)))
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "wrote %s; now: snowglobe run %[1]s\n", args[0])
			return nil
		},
	}
}

func newScenarioFmt() *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use:   "fmt FILE...",
		Short: "Rewrite scripts in the standard form",
		Long: `Rewrite scripts in the standard form, and print the names of those that change. The
files in a script stay as they are.`,
		Example: `  snowglobe scenario fmt race.txtar
  snowglobe scenario fmt --check testdata`,
		Args: cobra.MinimumNArgs(1),
		RunE: withScripts(func(cmd *cobra.Command, scripts []script.Script) error {
			changed := 0
			for _, one := range scripts {
				text := script.Format(one.Text())
				if bytes.Equal(text, one.Text()) {
					continue
				}
				changed++
				fmt.Fprintln(cmd.OutOrStdout(), one.File)
				if check {
					continue
				}
				if err := os.WriteFile(one.File, text, 0o644); err != nil {
					return failed(fmt.Errorf("format: %w", onDisk(one.File, err)))
				}
			}
			if check && changed > 0 {
				return verdict(fmt.Errorf("%d scripts are not in their standard form", changed))
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing, and fail if a script is not in the standard form")
	return cmd
}

func newScenarioLint() *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "lint [SCRIPT...]",
		Short: "Say what is wrong with scripts without running them",
		Long: `Say what is wrong with scripts without running them: unknown commands, wrong
arguments, invalid rules, files that are missing or that can't be read as what they should
be, and scripts that assert nothing. "snowglobe run" says the same before it runs anything.
Remarks do not count as mistakes, unless --strict is given: scripts without a title, files
that no command names, and scripts without mutations that show that they can fail.
The default is the library.`,
		Example: `  snowglobe scenario lint race.txtar
  snowglobe scenario lint --strict testdata`,
		RunE: withScripts(func(cmd *cobra.Command, scripts []script.Script) error {
			found := 0
			for _, one := range scripts {
				mistakes, remarks := scenarios.Lint(one)
				for _, mistake := range mistakes {
					found++
					fmt.Fprintln(cmd.OutOrStdout(), mistake)
				}
				for _, remark := range remarks {
					if strict {
						found++
					}
					fmt.Fprintf(cmd.OutOrStdout(), "%s (a remark)\n", remark)
				}
			}
			if found > 0 {
				return verdict(fmt.Errorf("problems found: %d", found))
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "also fail on remarks, as for scripts of the library")
	return cmd
}

func newScenarioList() *cobra.Command {
	return &cobra.Command{
		Use:     "list [SCRIPT...]",
		Short:   "List scripts and what each shows; the default is the library",
		Example: `  snowglobe scenario list`,
		RunE: withScripts(func(cmd *cobra.Command, scripts []script.Script) error {
			for _, one := range scripts {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n    %s\n", one.Name, one.Title()); err != nil {
					return failed(err)
				}
			}
			return nil
		}),
	}
}

func newScenarioDescribe() *cobra.Command {
	return &cobra.Command{
		Use:               "describe SCRIPT...",
		Short:             "Say what scripts show, phase by phase, and what makes them fail",
		Example:           `  snowglobe scenario describe crd-sync-signal`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeScripts,
		RunE: withScripts(func(cmd *cobra.Command, scripts []script.Script) error {
			for _, one := range scripts {
				if err := describeScript(cmd.OutOrStdout(), one); err != nil {
					return failed(err)
				}
			}
			return nil
		}),
	}
}

func describeScript(out io.Writer, one script.Script) error {
	mutations, err := one.Mutations()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s (%s)\n\n  %s\n", one.Name, one.File, one.Title())
	for i, phase := range one.Phases() {
		fmt.Fprintf(&text, "\n  %d. %s\n", i+1, phase)
	}
	if len(mutations) > 0 {
		fmt.Fprintf(&text, "\n  It fails if:\n")
	}
	for _, m := range mutations {
		fmt.Fprintf(&text, "  - %s\n", m.Name)
	}
	_, err = text.WriteTo(out)
	return err
}

func newScenarioCommands() *cobra.Command {
	return &cobra.Command{
		Use:   "commands [COMMAND]",
		Short: "List the script commands, or say what one of them does",
		Example: `  snowglobe scenario commands
  snowglobe scenario commands watch`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return failed(scenarios.WriteUsage(cmd.OutOrStdout(), strings.Join(args, "")))
		},
	}
}
