// Package component owns programs that run in the process alongside the API servers of a
// control plane, such as a controller manager: which goroutines are theirs, what these log,
// and how they crash. It knows no program.
package component

import (
	"crypto/ecdsa"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/serverlog"
)

// Host is what a control plane gives a component.
type Host struct {
	// Name is what rules call the component's path to the API servers: "partition client
	// name=kube-scheduler". While several components of one name run, the others are called
	// NAME-2, NAME-3, and so on.
	Name string
	// Config returns the configuration of a user whose requests take that path.
	Config func(user string, groups ...string) *rest.Config
	// Cut lets nothing through on that path until heal is called.
	Cut func() (heal func())
	// CA is the certificate of the control plane's authority, in PEM, and ServiceAccountKey
	// signs service account tokens, unless flags name another.
	CA                []byte
	ServiceAccountKey *ecdsa.PrivateKey

	Flags process.Flags
	Log   io.Writer // gets a copy of the log; may be nil
	Trace *trace.Recorder
	Left  func() // is called when the component has ended
}

// Component is a program that runs in the process. Its goroutines are known to be its own,
// and so is what they log: a fatal log line or a panic in one of them ends the program, not
// the process. Make it with ControlPlane.NewComponent.
type Component struct {
	*process.Member
	Host
	log *serverlog.Buffer
}

// Join makes a component, as a member of the process of that name; see
// ControlPlane.NewComponent.
func Join(member string, host Host, crash func(error)) (*Component, error) {
	c := &Component{Host: host, log: serverlog.NewBuffer(host.Log)}
	var err error
	c.Member, err = process.Join(member, host.Flags, c.log, func(why error) {
		c.noteCrash(why.Error())
		crash(why)
	})
	if err != nil {
		host.Left()
		return nil, err
	}
	return c, nil
}

// Crash begins an end that is as sudden as that of a process: nothing more from the
// component reaches an API server until heal is called.
func (c *Component) Crash() (heal func()) {
	c.noteCrash("on purpose")
	return c.Cut()
}

// noteCrash puts the crash into the trace, in one line.
func (c *Component) noteCrash(why string) {
	first, _, _ := strings.Cut(why, "\n")
	c.Trace.Record(trace.Note{Text: fmt.Sprintf("%s crashed: %s", c.Name, first)})
}

// Leave ends the component, when all its goroutines have ended.
func (c *Component) Leave() {
	c.Member.Leave()
	c.Left()
}

// Log returns the component's log, or only its end if it is long.
func (c *Component) Log() string { return c.log.String() }

// Logger returns what writes to the component's log in every goroutine. Those that timers
// start belong to no component: what they log without it goes to the log of the first API
// server, or to stderr if several control planes run in the process.
func (c *Component) Logger() klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(c.log), textlogger.Verbosity(c.Flags.Verbosity)))
}
