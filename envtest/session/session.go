// Package session is what a test and "snowglobe serve" say to each other: JSON-RPC
// (net/rpc/jsonrpc) over a connection to a unix socket. A connection is one control
// plane, from the first call, Start, until it is closed, by either side.
//
// The test and the server are of two modules, and each has this file: envtest/session in the
// server's, envtest/client/internal/session in the test's. They are the same, byte for byte.
package session

import "time"

// Version is that of the methods and their arguments. Both sides must have the same.
const Version = 2

// Service is the name of the methods' receiver.
const Service = "ControlPlane"

// The methods, with their argument and their result.
const (
	Start    = Service + ".Start"    // Options, Started
	AddUser  = Service + ".AddUser"  // User, Credentials
	Inject   = Service + ".Inject"   // the rule, its ID
	Gate     = Service + ".Gate"     // what waits at it, as in "hold", its ID
	Fired    = Service + ".Fired"    // ID, how often
	Await    = Service + ".Await"    // Awaited, the operations that wait
	Open     = Service + ".Open"     // ID, None
	Remove   = Service + ".Remove"   // ID, None
	Snapshot = Service + ".Snapshot" // None, ID
	Restore  = Service + ".Restore"  // ID, None
	Reset    = Service + ".Reset"    // None, None
	Compact  = Service + ".Compact"  // None, None
	Settle   = Service + ".Settle"   // None, Settled
	Trace    = Service + ".Trace"    // Form, string
	Log      = Service + ".Log"      // None, string
	Problems = Service + ".Problems" // None, the warnings and errors in the log
	Stop     = Service + ".Stop"     // None, None
)

// None is an argument or a result that says nothing.
type None struct{}

// ID is a rule, a gate or a snapshot of this connection.
type ID int

// Options say which control plane is wanted.
type Options struct {
	Version  int
	Test     string   // whose it is, for people
	Flags    []string // of kube-apiserver
	CRDPaths []string // absolute
	CRDs     [][]byte // in JSON
	Faults   []string // rules
	Seed     uint64
	// UnsettledWrites is WithSettledWrites(false).
	UnsettledWrites bool
	// Arguments are those of a kube-apiserver that is a program, whose defaults then hold
	// instead of the harness's.
	Arguments []string
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

// Awaited is how many operations are to wait at a gate.
type Awaited struct {
	Gate ID
	N    int
}

// Settled is a control plane in which nothing more happens by itself.
type Settled struct {
	Revision int64
	Held     []string // operations that wait because of a rule
}

// Form is how a trace is written.
type Form string

// The forms of a trace: for people, and for programs.
const (
	Text Form = "text"
	JSON Form = "json"
)
