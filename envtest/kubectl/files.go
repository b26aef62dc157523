package kubectl

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fileFlags are kubectl's flags that name files.
var fileFlags = []string{"filename", "kustomize", "patch-file", keyed, "from-env-file", "cert", "key"}

// keyed is the flag whose files may be KEY=FILE.
const keyed = "from-file"

// redirectFiles has the flags of a command look for files in Dir, because kubectl looks for
// them where the process is, and take a copy of Stdin for "-", for which it reads the
// process's.
func (c *Cmd) redirectFiles(command *cobra.Command, stdin string) {
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if slices.Contains(fileFlags, flag.Name) {
			flag.Value = &fileValue{Value: flag.Value, keyed: flag.Name == keyed, cmd: c, stdin: stdin}
		}
	})
}

// fileValue is a flag's value that names files.
type fileValue struct {
	pflag.Value
	keyed bool
	cmd   *Cmd
	stdin string
}

// Set implements pflag.Value.
func (v *fileValue) Set(value string) error {
	files := []string{value}
	if v.Type() == "stringSlice" {
		var err error
		if files, err = csv.NewReader(strings.NewReader(value)).Read(); err != nil {
			return v.Value.Set(value) // which says what is wrong
		}
	}
	for i, file := range files {
		var err error
		if files[i], err = v.redirect(file); err != nil {
			return err
		}
	}
	if v.Type() != "stringSlice" {
		return v.Value.Set(files[0])
	}
	var line strings.Builder
	w := csv.NewWriter(&line)
	_ = w.Write(files) // to memory
	w.Flush()
	return v.Value.Set(strings.TrimSuffix(line.String(), "\n"))
}

func (v *fileValue) redirect(value string) (string, error) {
	if key, file, ok := strings.Cut(value, "="); ok && v.keyed {
		file, err := v.redirect(file)
		return key + "=" + file, err
	}
	if value != "-" || v.cmd.Stdin == nil {
		return v.cmd.inDir(value), nil
	}
	content, err := io.ReadAll(v.cmd.Stdin)
	if err != nil {
		return "", fmt.Errorf("standard input of kubectl: %w", err)
	}
	return v.stdin, os.WriteFile(v.stdin, content, 0o600)
}

// inDir returns the path of a file of Dir. What is not there is left alone: it may be an
// address, or a mistake that kubectl explains.
func (c *Cmd) inDir(file string) string {
	path := filepath.Join(c.Dir, file)
	if _, err := os.Stat(path); c.Dir == "" || filepath.IsAbs(file) || err != nil {
		return file
	}
	return path
}
