package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"snowglobe.test/scenarios"
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
				return failed(fmt.Errorf("new script: %w", err))
			}
			_, err = file.Write(scenarios.Template())
			if err := errors.Join(err, file.Close()); err != nil {
				return failed(fmt.Errorf("new script: %w", err))
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
		RunE: func(cmd *cobra.Command, args []string) error {
			scripts, err := scenarios.Find(args...)
			if err != nil {
				return failed(err)
			}
			changed := 0
			for _, script := range scripts {
				text := scenarios.Format(script.Text())
				if bytes.Equal(text, script.Text()) {
					continue
				}
				changed++
				fmt.Fprintln(cmd.OutOrStdout(), script.File)
				if check {
					continue
				}
				if err := os.WriteFile(script.File, text, 0o644); err != nil {
					return failed(fmt.Errorf("format: %w", err))
				}
			}
			if check && changed > 0 {
				return failed(fmt.Errorf("%d scripts are not in their standard form", changed))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing, and fail if a script is not in the standard form")
	return cmd
}

func newScenarioLint() *cobra.Command {
	return &cobra.Command{
		Use:   "lint [SCRIPT...]",
		Short: "Say what is wrong with scripts without running them",
		Long: `Say what is wrong with scripts without running them: unknown commands, wrong
arguments, invalid rules, files that no command names, and scripts without mutations that
show that they can fail. The default is the library.`,
		Example: `  snowglobe scenario lint race.txtar`,
		RunE: func(cmd *cobra.Command, args []string) error {
			scripts, err := scenarios.Find(args...)
			if err != nil {
				return failed(err)
			}
			found := 0
			for _, script := range scripts {
				for _, problem := range script.Lint() {
					found++
					fmt.Fprintln(cmd.OutOrStdout(), problem)
				}
			}
			if found > 0 {
				return failed(fmt.Errorf("problems found: %d", found))
			}
			return nil
		},
	}
}

func newScenarioList() *cobra.Command {
	return &cobra.Command{
		Use:     "list [SCRIPT...]",
		Short:   "List scripts and what each shows; the default is the library",
		Example: `  snowglobe scenario list`,
		RunE: func(cmd *cobra.Command, args []string) error {
			scripts, err := scenarios.Find(args...)
			if err != nil {
				return failed(err)
			}
			for _, script := range scripts {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n    %s\n", script.Name, script.Title()); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func newScenarioDescribe() *cobra.Command {
	return &cobra.Command{
		Use:               "describe SCRIPT...",
		Short:             "Say what scripts show, phase by phase, and what makes them fail",
		Example:           `  snowglobe scenario describe crd-sync-signal`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeScripts,
		RunE: func(cmd *cobra.Command, args []string) error {
			scripts, err := scenarios.Find(args...)
			if err != nil {
				return failed(err)
			}
			for _, script := range scripts {
				if err := describeScript(cmd.OutOrStdout(), script); err != nil {
					return failed(err)
				}
			}
			return nil
		},
	}
}

func describeScript(out io.Writer, script scenarios.Script) error {
	mutations, err := script.Mutations()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s (%s)\n\n  %s\n", script.Name, script.File, script.Title())
	for i, phase := range script.Phases() {
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
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return failed(scenarios.WriteUsage(cmd.OutOrStdout(), name))
		},
	}
}
