package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"snowglobe.test/envtest/linked"
	"snowglobe.test/internal/diskerr"
	"snowglobe.test/internal/outfile"
	"snowglobe.test/internal/releases"
)

// The values of assets --print.
const (
	printHelp = "help"
	printPath = "path"
	printEnv  = "env"
)

func newAssets() *cobra.Command {
	printed, release := printHelp, ""
	cmd := &cobra.Command{
		Use:   "assets FOLDER",
		Short: "Make a folder of kube-apiserver, etcd and kubectl for envtest's KUBEBUILDER_ASSETS",
		Long: `Make a folder with the programs that controller-runtime's envtest starts: Snowglobe's
kube-apiserver, an in-memory etcd, and the kubectl of the same release. A test suite that
knows nothing about Snowglobe can run on them. They accept the flags of the originals,
and reject those that they can't honour.

The folder gets one copy of this program, about 250 MB, and three links to it. A
folder that "assets" made earlier is brought up to date.

With --release, its kube-apiserver is a stock one of another release, which is built if it is
not there (see "snowglobe release build"); etcd and kubectl are as without.`,
		Example: `  snowglobe assets bin/snowglobe
  snowglobe assets --print path bin/snowglobe   # for KUBEBUILDER_ASSETS=$(...) go test ./...
  snowglobe assets --print env bin/snowglobe    # for eval $(...)
  snowglobe assets --release 1.36 bin/1.36      # the stock kube-apiserver of another release`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if printed != printHelp && printed != printPath && printed != printEnv {
				return fmt.Errorf("--print %q is not known; use %s, %s or %s", printed, printHelp, printPath, printEnv)
			}
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return failed(err)
			}
			stock, err := stockRelease(cmd, release)
			if err != nil {
				return err
			}
			if err := makeAssets(dir, stock); err != nil {
				return failed(fmt.Errorf("assets: %w", diskerr.OrSame(dir, err)))
			}
			printAssets(cmd.OutOrStdout(), dir, printed, stock)
			return nil
		},
	}
	cmd.Flags().StringVar(&release, "release", "", "have the stock kube-apiserver of this `release`, like 1.36 or 1.36.3 (default Snowglobe's own)")
	cmd.Flags().StringVarP(&printed, "print", "p", printed, "what to print: help, path, or env for a line that exports the variable")
	return cmd
}

// stockRelease builds a release, unless none is named or it is there.
func stockRelease(cmd *cobra.Command, wanted string) (*releases.Release, error) {
	if wanted == "" {
		return nil, nil
	}
	if err := releases.Check(wanted); err != nil {
		return nil, fmt.Errorf("--release: %w", err)
	}
	folder, err := releases.InCache()
	if err != nil {
		return nil, failed(err)
	}
	found, err := folder.Find(wanted)
	if found == nil && err == nil {
		found, err = folder.Build(cmd.Context(), wanted, cmd.ErrOrStderr())
	}
	return found, failed(err)
}

func printAssets(w io.Writer, dir, printed string, stock *releases.Release) {
	switch printed {
	case printPath:
		fmt.Fprintln(w, dir)
	case printEnv:
		fmt.Fprintf(w, "export KUBEBUILDER_ASSETS='%s'\n", dir)
	default:
		apiServer := linked.Release()
		if stock != nil {
			apiServer = stock.Version
		}
		fmt.Fprintf(w, `kube-apiserver %s, kubectl %s and an etcd in memory are in %s.

    export KUBEBUILDER_ASSETS='%[3]s'
    go test ./...
`, apiServer, linked.Release(), dir)
	}
}

// The copies in a folder that the programs are links to, by which a folder is known as ours: of
// Snowglobe, and of a stock kube-apiserver, if there is one.
const (
	assetsProgram  = "snowglobe"
	stockAPIServer = apiServerName + ".stock"
)

// makeAssets fills a folder, and touches none that anything else is in. stock is nil for no other
// kube-apiserver than our own.
func makeAssets(dir string, stock *releases.Release) error {
	if err := checkAssets(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, stockCopy := filepath.Join(dir, executable(assetsProgram)), filepath.Join(dir, executable(stockAPIServer))
	if err := copyProgram(self, program); err != nil {
		return err
	}
	if stock == nil {
		err = os.RemoveAll(stockCopy)
	} else {
		err = copyProgram(stock.Program, stockCopy)
	}
	if err != nil {
		return err
	}
	for _, name := range standInNames() {
		from := program
		if name == apiServerName && stock != nil {
			from = stockCopy
		}
		if err := link(from, filepath.Join(dir, executable(name))); err != nil {
			return err
		}
	}
	return nil
}

// checkAssets refuses a folder with programs of the names that are not Snowglobe's.
func checkAssets(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file; name a folder", dir)
	}
	var ours []fs.FileInfo
	for _, name := range []string{assetsProgram, stockAPIServer} {
		if info, err := os.Stat(filepath.Join(dir, executable(name))); err == nil {
			ours = append(ours, info)
		}
	}
	for _, name := range standInNames() {
		path := filepath.Join(dir, executable(name))
		found, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(ours, func(our fs.FileInfo) bool { return os.SameFile(found, our) }) {
			return fmt.Errorf("%s is there already and is not Snowglobe's; name another folder", path)
		}
	}
	return nil
}

// copyProgram replaces a program in one step, so that one that runs goes on.
func copyProgram(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	return outfile.Replace(to, source, 0o755)
}

// link makes a program known by another name: by a hard link, so that what is copied
// from the folder still is a program.
func link(program, name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Link(program, name)
}

// executable is the name of a program's file.
func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}
