package envtest

import (
	"crypto/ecdsa"
	"fmt"
	"sync/atomic"

	"snowglobe.test/envtest/process"
)

// Component is a program beside the API servers that runs in the process, such as a
// controller manager: whose goroutines these are is known, and so is what they log. A
// fatal log line or a panic in them ends the program, not the process.
type Component struct {
	*process.Member
	log *logBuffer
}

// components numbers them, for their names.
var components atomic.Int64

// NewComponent makes a component of the control plane; crash is told of what would have
// ended its process, and must not block. Do and Go run something as the component's; when
// all of it has ended, which Wait waits for, the caller calls Leave.
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

// CA returns the certificate, in PEM, of the control plane's authority.
func (cp *ControlPlane) CA() []byte { return cp.authority.CertPEM() }

// ServiceAccountKey returns the key that signs the tokens of service accounts, unless
// flags name another.
func (cp *ControlPlane) ServiceAccountKey() *ecdsa.PrivateKey { return cp.accountKey }
