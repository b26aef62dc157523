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
	LeaderChanged   Failure = "leader-changed"    // the store has another leader; what was asked for may have happened
	RequestTimedOut Failure = "request-timed-out" // the store gave up on the request; it may have happened
	Timeout         Failure = "timeout"           // the caller's deadline passed; it may have happened
	Compacted       Failure = "compacted"         // the revision that was asked for is gone
)

// Failures of HTTP. A code comes with the Status object that the API server
// would send.
const (
	TooManyRequests    Failure = "429"
	InternalError      Failure = "500"
	ServiceUnavailable Failure = "503"
	GatewayTimeout     Failure = "504"
	Gone               Failure = "410"   // reason Expired, as after a compaction
	Reset              Failure = "reset" // the connection is reset by the peer
	EOF                Failure = "eof"   // the connection ends; in a stream, in the middle
)

// Other failures.
const (
	Refused      Failure = "refused"      // dial: nobody listens
	Unreachable  Failure = "unreachable"  // dial: no way to get there
	Expired      Failure = "expired"      // the token or the certificate is too old
	Unauthorized Failure = "unauthorized" // the token or the certificate is not known
	PlainError   Failure = "error"        // an error without any further meaning
)

// err makes the real error behind the name, as a client in the process sees it;
// nil for an unknown name.
func (f Failure) err(op Operation, retryAfter time.Duration) error {
	seconds := int(retryAfter / time.Second)
	injected := fmt.Sprintf("injected at %s", op)
	switch f {
	case Unavailable:
		return status.Error(codes.Unavailable, "connection error: "+injected)
	case NoLeader:
		return rpctypes.ErrNoLeader
	case LeaderChanged:
		return rpctypes.ErrLeaderChanged
	case RequestTimedOut:
		return rpctypes.ErrTimeout
	case Timeout:
		return context.DeadlineExceeded
	case Compacted:
		return rpctypes.ErrCompacted
	case TooManyRequests:
		return apierrors.NewTooManyRequests(injected, seconds)
	case InternalError:
		return apierrors.NewInternalError(errors.New(injected))
	case ServiceUnavailable:
		return unavailableFor(injected, seconds)
	case GatewayTimeout:
		return apierrors.NewTimeoutError(injected, 0)
	case Gone:
		return apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	case Reset:
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case EOF:
		if op.Phase == Stream || strings.HasPrefix(op.Point, "watch/") {
			return io.ErrUnexpectedEOF
		}
		return io.EOF
	case Refused:
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case Unreachable:
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
	case Expired:
		if op.Point == "auth/certificate" {
			return x509.CertificateInvalidError{Reason: x509.Expired, Detail: injected}
		}
		return errors.New("service account token has expired")
	case Unauthorized:
		return apierrors.NewUnauthorized("Unauthorized")
	case PlainError:
		return errors.New(injected)
	}
	return nil
}

// unavailableFor is a 503; with a number of seconds, one that asks to come
// again.
func unavailableFor(reason string, seconds int) error {
	err := apierrors.NewServiceUnavailable(reason)
	if seconds > 0 {
		details := &err.ErrStatus
		details.Details = apierrors.NewTooManyRequests("", seconds).ErrStatus.Details
	}
	return err
}

// broken is what a caller sees of a connection that is lost before the answer.
func broken(point string) Failure {
	if strings.HasPrefix(point, "store/") {
		return Unavailable
	}
	return Reset
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
