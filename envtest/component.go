package envtest

import (
	"crypto/ecdsa"
	"fmt"
	"sync/atomic"

	"snowglobe.test/envtest/process"
)

// Component is a program that runs in the process alongside the API servers, such as a
// controller manager. Its goroutines are known to be its own, and so is what they log: a
// fatal log line or a panic in one of them ends the program, not the process.
type Component struct {
	*process.Member
	log *logBuffer
}

// components numbers them, for their names.
var components atomic.Int64

// NewComponent makes a component of the control plane. crash is called with whatever would
// have ended its process, and must not block. Do and Go run a function as part of the
// component; when all of them have ended, which Wait waits for, the caller calls Leave.
func (cp *ControlPlane) NewComponent(name string, crash func(error)) (*Component, error) {
	log := newLogBuffer(cp.log)
	member, err := process.Join(fmt.Sprintf("%s-%s-%d", cp.name, name, components.Add(1)), cp.first().newest.flags.Process(), log, crash)
	if err != nil {
		return nil, err
	}
	return &Component{member, log}, nil
}

// Log returns the component's log, or only its end if it is long.
func (c *Component) Log() string { return c.log.String() }

// CA returns the certificate of the control plane's certificate authority, in PEM.
func (cp *ControlPlane) CA() []byte { return cp.authority.CertPEM() }

// ServiceAccountKey returns the key that signs service account tokens, unless flags name
// another.
func (cp *ControlPlane) ServiceAccountKey() *ecdsa.PrivateKey { return cp.accountKey }
