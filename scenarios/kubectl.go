package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// kubectlName is the name of the command and of its user agent.
const kubectlName = "kubectl"

var kubectlCommand = command{
	name:  kubectlName,
	args:  "[ARGUMENT]...",
	least: 0, most: anyNumber,
	summary: "run kubectl, of the release of the API server, in this process",
	details: `It goes by the user and the path of now, and reads no configuration but its flags. Files
are those of the script. It has no plugins, nothing to read from a terminal, and no
"auth can-i", which ends the process to say no; apply a SelfSubjectAccessReview instead.`,
	example:  "kubectl apply -f widget.yaml\nkubectl wait --for=condition=Ready widget/blue\n! kubectl get widget red\nstderr NotFound",
	onServer: true,
	verbatim: true,
	run:      func(ctx context.Context, s *session, args []string) error { return s.kubectl(ctx, args) },
}

// kubectl runs kubectl in the folder of the script.
func (s *session) kubectl(ctx context.Context, args []string) error {
	if slices.Contains(args, "can-i") {
		return fmt.Errorf(`%w: "auth can-i" would end the process; apply a SelfSubjectAccessReview instead`, errUsage)
	}
	config, err := s.config(kubectlName)
	if err != nil {
		return err
	}
	home := s.ts.MkAbs(".kube")
	flags, err := kubectlFlags(config, home)
	if err != nil {
		return err
	}
	preferences := filepath.Join(home, "kuberc")
	if err := os.WriteFile(preferences, []byte(noPreferences), 0o600); err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	args = append([]string{"--kuberc=" + preferences}, filesOf(args, s.ts.MkAbs)...)
	root := cmd.NewKubectlCommand(cmd.KubectlOptions{
		Arguments:   append([]string{kubectlName}, args...),
		ConfigFlags: flags,
		IOStreams:   genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr},
	})
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SilenceUsage, root.SilenceErrors = true, true
	err = kubectlFatal.run(func() error { return root.ExecuteContext(ctx) })
	_, _ = stdout.WriteTo(&s.out)
	if warnings := strings.TrimSpace(stderr.String()); warnings != "" && err == nil {
		fmt.Fprintln(s.ts.Stderr(), warnings)
	}
	return err
}

// noPreferences is a kuberc in the place of that of whoever runs the script.
const noPreferences = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"

// fileFlags are kubectl's flags that name files. The last is also KEY=FILE.
var fileFlags = []string{"-f", "--filename", "-k", "--kustomize", "--patch-file", "--from-env-file", "--from-file"}

// filesOf makes the files in the arguments those of the script: kubectl looks for them
// where the process is.
func filesOf(args []string, absolute func(string) string) []string {
	named := func(file string) string {
		if _, err := os.Stat(absolute(file)); err != nil {
			return file // standard input, an address, or a mistake that kubectl explains
		}
		return absolute(file)
	}
	found := slices.Clone(args)
	for i, arg := range args {
		flag, value, joined := strings.Cut(arg, "=")
		switch {
		case joined && slices.Contains(fileFlags, flag):
			key := ""
			if before, after, ok := strings.Cut(value, "="); ok {
				key, value = before+"=", after
			}
			found[i] = flag + "=" + key + named(value)
		case i > 0 && slices.Contains(fileFlags, args[i-1]):
			found[i] = named(arg)
		}
	}
	return found
}

// kubectlFlags are the flags with which kubectl reaches the servers of the script. It
// needs a kubeconfig all the same, or it would read that of whoever runs the script.
func kubectlFlags(config *rest.Config, home string) (*genericclioptions.ConfigFlags, error) {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[kubectlName] = &clientcmdapi.Cluster{Server: config.Host, InsecureSkipTLSVerify: true}
	kubeconfig.Contexts[kubectlName] = &clientcmdapi.Context{Cluster: kubectlName}
	kubeconfig.CurrentContext = kubectlName
	file := filepath.Join(home, "config")
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		return nil, err
	}
	flags := genericclioptions.NewConfigFlags(true)
	*flags.KubeConfig, *flags.CacheDir = file, filepath.Join(home, "cache")
	return flags.WithWrapConfigFn(func(asked *rest.Config) *rest.Config {
		config := rest.CopyConfig(config)
		config.Impersonate, config.Timeout = asked.Impersonate, asked.Timeout
		if asked.BearerToken != "" {
			config.BearerToken = asked.BearerToken
		}
		return config
	}), nil
}

// kubectlFatal is how kubectl fails in this process: by a panic that run recovers. The
// handler is a variable of kubectl's package, for all that run at the same time.
var kubectlFatal fatalHandler

type fatalHandler struct {
	mu      sync.Mutex
	running int
}

// fatalExit is the panic in the place of the end of the process.
type fatalExit struct{ reason string }

func (h *fatalHandler) run(f func() error) (err error) {
	h.enter()
	defer h.leave()
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case fatalExit:
			err = errors.New(strings.TrimSpace(reason.reason))
		default:
			panic(reason)
		}
	}()
	return f()
}

func (h *fatalHandler) enter() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running++; h.running == 1 {
		cmdutil.BehaviorOnFatal(func(reason string, code int) {
			if reason == "" {
				reason = fmt.Sprintf("exit status %d", code)
			}
			panic(fatalExit{reason})
		})
	}
}

func (h *fatalHandler) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running--; h.running == 0 {
		cmdutil.DefaultBehaviorOnFatal()
	}
}

// startSignals starts the goroutine in which the runtime hands out signals. kubectl asks
// for some, and in a bubble that goroutine would keep the bubble from ending.
var startSignals = sync.OnceFunc(func() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	signal.Stop(c)
})
