package fault

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// fails returns what a caller sees at a point.
func fails(a Action, op Operation) error {
	return Decision{a.Kind, &Entry{rule: Rule{Action: a}}, &op}.Err()
}

// What upstream asks of an error must be true of the one behind each name, and
// of no other.
func TestFailures(t *testing.T) {
	questions := map[Failure]func(error) bool{
		Unavailable:        func(err error) bool { return status.Code(err) == codes.Unavailable },
		NoLeader:           func(err error) bool { return errors.Is(err, rpctypes.ErrNoLeader) },
		LeaderChanged:      func(err error) bool { return errors.Is(err, rpctypes.ErrLeaderChanged) },
		RequestTimedOut:    func(err error) bool { return errors.Is(err, rpctypes.ErrTimeout) },
		Timeout:            func(err error) bool { return errors.Is(err, context.DeadlineExceeded) },
		Compacted:          func(err error) bool { return errors.Is(err, rpctypes.ErrCompacted) },
		TooManyRequests:    apierrors.IsTooManyRequests,
		InternalError:      apierrors.IsInternalError,
		ServiceUnavailable: apierrors.IsServiceUnavailable,
		GatewayTimeout:     apierrors.IsTimeout,
		Gone:               apierrors.IsResourceExpired,
		Reset:              utilnet.IsConnectionReset,
		EOF:                func(err error) bool { return errors.Is(err, io.EOF) },
		Refused:            utilnet.IsConnectionRefused,
		Unreachable:        func(err error) bool { return err.Error() == "dial tcp: connect: no route to host" },
		Expired:            func(err error) bool { return err.Error() == "service account token has expired" },
		Unauthorized:       apierrors.IsUnauthorized,
		PlainError: func(err error) bool {
			return err.Error() == "injected at "+put.String()+", because of the rule \"fail with=error\"" && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
		},
	}
	for name := range questions {
		err := fails(Action{Kind: Fail, With: name}, put)
		for other, question := range questions {
			assert.Equal(t, name == other, question(err), "%s: is it %s? %v", name, other, err)
		}
	}
	assert.Len(t, questions, len(Failures()))
}

func TestFailuresThatDepend(t *testing.T) {
	stream := Operation{Point: "http/watch", Phase: Stream}
	assert.Equal(t, io.ErrUnexpectedEOF, fails(Action{Kind: Fail, With: EOF}, stream))
	assert.Equal(t, io.ErrUnexpectedEOF, fails(Action{Kind: Fail, With: EOF}, Operation{Point: "watch/pods", Verb: "added"}))

	var old x509.CertificateInvalidError
	assert.ErrorAs(t, fails(Action{Kind: Fail, With: Expired}, Operation{Point: "auth/certificate"}), &old)
	assert.Equal(t, x509.Expired, old.Reason)

	for _, with := range []Failure{TooManyRequests, ServiceUnavailable} {
		seconds, ok := apierrors.SuggestsClientDelay(fails(Action{Kind: Fail, With: with, RetryAfter: 2 * time.Second}, stream))
		assert.True(t, ok && seconds == 2, "%s: retry after %d, %t", with, seconds, ok)
	}
	_, ok := apierrors.SuggestsClientDelay(fails(Action{Kind: Fail, With: ServiceUnavailable}, stream))
	assert.False(t, ok, "503 without retry-after asks to come again")

	assert.Equal(t, codes.Unavailable, status.Code(fails(Action{Kind: LoseReply}, put)))
	assert.True(t, utilnet.IsConnectionReset(fails(Action{Kind: LoseReply}, Operation{Point: "http/update"})))
	assert.NoError(t, Decision{}.Err())
	assert.NoError(t, fails(Action{Kind: Drop}, put))
}

// An etcd client reads from the wire what GRPC sent.
func TestGRPC(t *testing.T) {
	for _, with := range []Failure{NoLeader, LeaderChanged, RequestTimedOut, Compacted} {
		err := fails(Action{Kind: Fail, With: with}, put)
		wire := GRPC(err)
		assert.Equal(t, err.(rpctypes.EtcdError).Code(), status.Code(wire), "%s", with)
		assert.Equal(t, err, rpctypes.Error(wire), "%s", with)
	}
	assert.Equal(t, codes.Unavailable, status.Code(GRPC(fails(Action{Kind: Fail, With: Unavailable}, put))))
	assert.Equal(t, codes.DeadlineExceeded, status.Code(GRPC(context.DeadlineExceeded)))
	assert.Equal(t, codes.Canceled, status.Code(GRPC(context.Canceled)))
	assert.Equal(t, io.EOF, GRPC(io.EOF))
}
