//go:build !snowglobe_light

package kubectl

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags of kubectl's that name files or folders: those it reads, those that it may make, one whose
// files may be KEY=FILE, and one that names formats, of which some read a file.
var readFlags = []string{
	"filename", "kustomize", "patch-file", keyed, "from-env-file", "cert", "key", "template",
	"certificate-authority", "client-certificate", "client-key",
}

var writeFlags = []string{"cache-dir", "kubeconfig", "kuberc", "output-directory"}

const (
	keyed  = "from-file"
	output = "output"
)

// kustomizes is the command that names a folder by its argument, and a file to write by --output.
const kustomizes = "kubectl kustomize"

// redirectFiles has a command that is about to run look for files in Dir, because kubectl looks
// for them where the process is, and take a copy of Stdin for "-", for which it reads the
// process's.
func (c *Cmd) redirectFiles(command *cobra.Command, stdin string) error {
	kustomize := command.CommandPath() == kustomizes
	var failed error
	command.Flags().Visit(func(flag *pflag.Flag) {
		var err error
		switch name := flag.Name; {
		case kustomize && name == output, slices.Contains(writeFlags, name):
			err = replace(flag.Value, c.written)
		case name == output:
			err = replace(flag.Value, c.format)
		case slices.Contains(readFlags, name):
			err = replace(flag.Value, func(value string) (string, error) { return c.read(value, name == keyed, stdin) })
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("--%s: %w", flag.Name, err)
		}
	})
	if kustomize && c.Dir != "" {
		run := command.RunE
		command.RunE = func(command *cobra.Command, args []string) error {
			return run(command, []string{c.inDir(cmp.Or(args...))})
		}
	}
	return failed
}

// replace puts what redirect returns in the place of each value of a flag.
func replace(flag pflag.Value, redirect func(string) (string, error)) error {
	list, ok := flag.(pflag.SliceValue)
	if !ok {
		value, err := redirect(flag.String())
		if err != nil || value == flag.String() {
			return err
		}
		return flag.Set(value)
	}
	values := list.GetSlice()
	for i := range values {
		var err error
		if values[i], err = redirect(values[i]); err != nil {
			return err
		}
	}
	return list.Replace(values)
}

// read returns the path of a file that a flag names, perhaps after a key.
func (c *Cmd) read(value string, keyed bool, stdin string) (string, error) {
	if key, file, ok := strings.Cut(value, "="); ok && keyed {
		file, err := c.read(file, false, stdin)
		return key + "=" + file, err
	}
	if value != "-" {
		return c.inDir(value), nil
	}
	var content []byte
	if c.Stdin != nil {
		var err error
		if content, err = io.ReadAll(c.Stdin); err != nil {
			return "", fmt.Errorf("standard input of kubectl: %w", err)
		}
	}
	return stdin, os.WriteFile(stdin, content, 0o600)
}

// written returns the path of a file or folder that kubectl makes; "-" is its output.
func (c *Cmd) written(file string) (string, error) {
	if c.Dir == "" || file == "-" || filepath.IsAbs(file) {
		return file, nil
	}
	return filepath.Join(c.Dir, file), nil
}

// format returns a format of output, such as go-template-file=FILE or json.
func (c *Cmd) format(value string) (string, error) {
	name, file, ok := strings.Cut(value, "=")
	if !ok || !strings.HasSuffix(name, "file") {
		return value, nil
	}
	return name + "=" + c.inDir(file), nil
}

// inDir returns the path of a file of Dir. What is not there is left alone: it may be an
// address, a template, or a mistake that kubectl explains.
func (c *Cmd) inDir(file string) string {
	path := filepath.Join(c.Dir, file)
	if _, err := os.Stat(path); c.Dir == "" || filepath.IsAbs(file) || err != nil {
		return file
	}
	return path
}
