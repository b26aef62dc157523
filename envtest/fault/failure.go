package fault

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Failure names an error that an operation can fail with. The set is closed.
type Failure string

// Failures of the store.
const (
	Unavailable     Failure = "unavailable"       // no connection to the store
	NoLeader        Failure = "no-leader"         // the store has no leader
	LeaderChanged   Failure = "leader-changed"    // the store has a new leader; the request may have taken effect
	RequestTimedOut Failure = "request-timed-out" // the store gave up on the request; it may have taken effect
	Timeout         Failure = "timeout"           // the caller's deadline passed; the request may have taken effect
	Compacted       Failure = "compacted"         // the requested revision is gone
)

// Failures of HTTP. A code comes with the Status that the API server would send.
const (
	TooManyRequests    Failure = "429"
	InternalError      Failure = "500"
	ServiceUnavailable Failure = "503"
	GatewayTimeout     Failure = "504"
	Gone               Failure = "410"   // reason Expired, as after a compaction
	Reset              Failure = "reset" // the connection is reset by the peer
	EOF                Failure = "eof"   // the connection ends; a stream breaks off in the middle
)

// Other failures.
const (
	Refused      Failure = "refused"      // dial: nothing is listening there
	Unreachable  Failure = "unreachable"  // dial: there is no route to the host
	Expired      Failure = "expired"      // the token or certificate has expired
	Unauthorized Failure = "unauthorized" // the token or certificate is not recognized
	PlainError   Failure = "error"        // an error with no particular meaning
)

// failures are the real errors behind the names, as a client in this process
// sees them, in the order of the constants.
var failures = []struct {
	name    Failure
	meaning string
	err     func(injection) error
}{
	{Unavailable, "no connection to the store", func(i injection) error { return status.Error(codes.Unavailable, "connection error: "+i.text) }},
	{NoLeader, "the store has no leader", always(rpctypes.ErrNoLeader)},
	{LeaderChanged, "the store has a new leader; the request may have taken effect", always(rpctypes.ErrLeaderChanged)},
	{RequestTimedOut, "the store gave up on the request; it may have taken effect", always(rpctypes.ErrTimeout)},
	{Timeout, "the caller's deadline passed; the request may have taken effect", always(context.DeadlineExceeded)},
	{Compacted, "the requested revision is gone", always(rpctypes.ErrCompacted)},
	{TooManyRequests, "a Status with that code", func(i injection) error { return apierrors.NewTooManyRequests(i.text, i.seconds) }},
	{InternalError, "a Status with that code", func(i injection) error { return apierrors.NewInternalError(errors.New(i.text)) }},
	{ServiceUnavailable, "a Status with that code", func(i injection) error {
		err := apierrors.NewServiceUnavailable(i.text)
		if i.seconds > 0 { // it asks to come again
			err.ErrStatus.Details = apierrors.NewTooManyRequests("", i.seconds).ErrStatus.Details
		}
		return err
	}},
	{GatewayTimeout, "a Status with that code", func(i injection) error { return apierrors.NewTimeoutError(i.text, 0) }},
	{Gone, "a Status with that code and reason Expired, as after a compaction", func(injection) error {
		return apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	}},
	{Reset, "the connection is reset by the peer", always(&net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)})},
	{EOF, "the connection ends; a stream breaks off in the middle", func(i injection) error {
		if i.at.Phase == Stream || strings.HasPrefix(i.at.Point, WatchPoint) {
			return io.ErrUnexpectedEOF
		}
		return io.EOF
	}},
	{Refused, "nothing is listening there", always(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})},
	{Unreachable, "there is no route to the host", always(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)})},
	{Expired, "the token or certificate has expired", func(i injection) error {
		if i.at.Point == AuthCertificate {
			return x509.CertificateInvalidError{Reason: x509.Expired, Detail: i.text}
		}
		return errors.New("service account token has expired")
	}},
	{Unauthorized, "the token or certificate is not recognized", func(injection) error { return apierrors.NewUnauthorized("Unauthorized") }},
	{PlainError, "an error with no particular meaning", func(i injection) error { return errors.New(i.text) }},
}

// injection is what an error is made of.
type injection struct {
	at      Operation
	text    string // for people
	seconds int    // of retry-after
}

func always(err error) func(injection) error { return func(injection) error { return err } }

// err makes the real error behind the name; nil for an unknown name.
func (f Failure) err(op Operation, retryAfter time.Duration) error {
	for _, known := range failures {
		if known.name == f {
			return known.err(injection{op, fmt.Sprintf("injected at %s", op), int(retryAfter / time.Second)})
		}
	}
	return nil
}

// GRPC is the error as an etcd server sends it on the wire, for injectors that
// serve gRPC. Errors of other kinds than the store's stay what they are.
func GRPC(err error) error {
	var known rpctypes.EtcdError
	switch {
	case errors.As(err, &known):
		return status.Error(known.Code(), known.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	}
	return err
}
