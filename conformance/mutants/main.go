// Mutants makes mutants of upstream's source, small changes, and finds out which conformance
// case notices which. What is found is kept in verdicts.json beside it, and told in
// docs/reference/mutants.md.
//
//	go -C conformance/mutants run . list --system S7
//	go -C conformance/mutants run . run --each 5 --seed 7 --fresh --keep
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// errMissed is the error of a mutant that should have been killed and was not: exit code 1.
var errMissed = errors.New("mutants: not killed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command().ExecuteContext(ctx)
	switch {
	case err == nil:
		return
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "mutants: interrupted")
		os.Exit(130)
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, errMissed) {
		os.Exit(1)
	}
	os.Exit(2)
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "mutants",
		Short: "Find out which conformance case notices which mutant of upstream's source",
		Long: `A mutant is a small change of upstream's source, such as a negated condition. This
program makes thousands of them, builds one program that has each behind a switch,
and runs conformance cases on it. A mutant that a case fails on is killed.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.AddCommand(newList(), newBuild(), newRun(), newCheck(), newTable())
	return root
}
