package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"snowglobe.test/envtest/session/server"
	"snowglobe.test/internal/unixsocket"
)

func newServe() *cobra.Command {
	var socket string
	var verbose bool
	cfg := server.Config{Linger: 20 * time.Second, Idle: max(2, runtime.NumCPU())}
	cmd := &cobra.Command{
		Use:   "serve --socket FILE",
		Short: "Run control planes for tests in other processes",
		Long: `Run control planes for tests that use the Go package envtest/client, until Ctrl-C, or
until no test has connected for a while. Tests start a server themselves when they find
none, so use this to watch one, or to keep one running: SNOWGLOBE_SOCKET=FILE then tells
tests where it is.

When a test is done with a control plane, it is reset and kept for the next test that
asks for the same one. A line is printed for each test, saying which one it gets.

Whoever can connect gets a control plane, with its admin and with files read on request:
only your user can, whatever the umask is. A folder in which other users could put a
socket of theirs in its place is refused.`,
		Example: `  snowglobe serve --socket globe.sock --linger 0 -v`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case socket == "":
				return errors.New("--socket names the file to listen at")
			case cfg.Linger < 0:
				return fmt.Errorf("--linger %s is not a time to wait", cfg.Linger)
			case cfg.Idle < 0:
				return fmt.Errorf("--idle %d is not a number of control planes", cfg.Idle)
			}
			if verbose {
				cfg.Log = cmd.ErrOrStderr()
			}
			cfg.Told = func(line string) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s  %s\n", time.Now().Format(time.TimeOnly), line)
			}
			return failed(serve(cmd.Context(), cmd.OutOrStdout(), socket, cfg))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&socket, "socket", "", "the `file` of the unix socket to listen on")
	flags.DurationVar(&cfg.Linger, "linger", cfg.Linger, "exit when no test has been connected for this long; 0 means never")
	flags.IntVar(&cfg.Idle, "idle", cfg.Idle, "keep at most this many idle control planes")
	flags.BoolVarP(&verbose, "verbose", "v", false, "show the API servers' logs")
	return cmd
}

// serve serves tests until the context ends or they stay away.
func serve(ctx context.Context, stdout io.Writer, socket string, cfg server.Config) error {
	listener, err := unixsocket.Listen(ctx, socket)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen at %s: in use; if no server runs there, remove the file", socket)
	}
	if err != nil {
		return fmt.Errorf("listen at %s: %w", socket, err)
	}
	// Whoever has started this waits for the line.
	if _, err := fmt.Fprintf(stdout, "serving control planes at %s\n", socket); err != nil {
		return errors.Join(err, listener.Close())
	}
	return server.Serve(ctx, listener, cfg)
}
