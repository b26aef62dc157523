// Package session is what a test and "snowglobe serve" say to each other: JSON-RPC
// (net/rpc/jsonrpc) over a connection to a unix socket. A connection is one control
// plane, from the first call, Start, until it is closed, by either side.
package session

import "time"

// Version is that of the methods and their arguments. Both sides must have the same.
const Version = 1

// Service is the name of the methods' receiver.
const Service = "ControlPlane"

// The methods.
const (
	Start   = Service + ".Start"   // Options, Started
	AddUser = Service + ".AddUser" // User, Credentials
	Inject  = Service + ".Inject"  // the rule, None
	Reset   = Service + ".Reset"   // None, None
	Log     = Service + ".Log"     // None, string
	Stop    = Service + ".Stop"    // None, None
)

// None is an argument or a result that says nothing.
type None struct{}

// Options say which control plane is wanted.
type Options struct {
	Version  int
	Test     string   // whose it is, for people
	Flags    []string // of kube-apiserver
	CRDPaths []string // absolute
	CRDs     [][]byte // in JSON
	Faults   []string // rules
	Seed     uint64
	// StartTimeout and StopTimeout are zero for the defaults.
	StartTimeout, StopTimeout time.Duration
}

// Started is a control plane that is ready.
type Started struct {
	Release string // of Kubernetes
	Admin   Credentials
}

// User is who wants credentials.
type User struct {
	Name   string
	Groups []string
}

// Credentials are those of one user, in PEM, for the server at Host, an https URL.
type Credentials struct {
	Host                        string
	Authority, Certificate, Key []byte
}
