// Package kubectl runs kubectl in the process of a test: the kubectl of the linked release,
// with any client configuration, including one in memory and in virtual time. It needs no
// program, no kubeconfig and no port, and reads no files or settings of the user who runs
// the test.
//
//	out, err := kubectl.Run(ctx, cp.Config(), "wait", "--for=condition=Available", "deployment/snow")
//
// There are no plugins, and nothing that needs more than requests: a socket, a terminal or another
// program, as exec, port-forward, diff, "run --attach" and "create --edit" do. "auth can-i" would
// end the process to say no, and "version" knows only the version of a program. Such commands fail
// with ErrRefused before they do anything.
package kubectl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/rest"
)

// ErrRefused is the error of commands that can't be run here, whatever they are about.
var ErrRefused = errors.New("it can't be run in this process")

// Cmd is a kubectl command, as exec.Cmd is a command in another process. It may be run
// more than once.
type Cmd struct {
	// Config says where requests go, and as which user. It is required.
	Config *rest.Config
	// Args are the arguments, without the name of the program.
	Args []string
	// Dir is the folder for files that flags and arguments name, to read and to write. Empty
	// means that of the process.
	Dir string
	// Stdin is what "-f -" reads. Nil means no input.
	Stdin io.Reader
	// Stdout and Stderr receive what kubectl prints. Nil discards it.
	Stdout, Stderr io.Writer
}

// Run runs kubectl and returns what it printed. An error includes what it wrote to stderr.
func Run(ctx context.Context, config *rest.Config, args ...string) (stdout string, err error) {
	var out, warnings bytes.Buffer
	err = (&Cmd{Config: config, Args: args, Stdout: &out, Stderr: &warnings}).Run(ctx)
	if said := strings.TrimSpace(warnings.String()); err != nil && said != "" && !strings.Contains(err.Error(), said) {
		err = fmt.Errorf("%w\n%s", err, said)
	}
	return out.String(), err
}
