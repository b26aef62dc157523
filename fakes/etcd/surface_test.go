package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// surfaceCalls are calls of the services few clients use. They are made in
// this order.
var surfaceCalls = []struct {
	name string
	call func(ctx context.Context, c *clientv3.Client) (any, error)
}{
	{"auth status", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.AuthStatus(ctx) }},
	{"authenticate", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.Authenticate(ctx, "u", "p") }},

	{"put", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.Put(ctx, "a", "1") }},
	{"status", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.Status(ctx, c.Endpoints()[0]) }},
	{"members", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.MemberList(ctx) }},
	{"remove a stranger", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.MemberRemove(ctx, 7) }},
	{"remove the only member", removeMember},
	{"promote a stranger", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.MemberPromote(ctx, 7) }},
	{"update a stranger", func(ctx context.Context, c *clientv3.Client) (any, error) {
		return c.MemberUpdate(ctx, 7, []string{"http://127.0.0.1:1"})
	}},
	{"update the only member", func(ctx context.Context, c *clientv3.Client) (any, error) {
		return nil, updateMember(ctx, c, "http://127.0.0.1:7777")
	}},
	{"update the only member to nonsense", func(ctx context.Context, c *clientv3.Client) (any, error) {
		return nil, updateMember(ctx, c, "nonsense")
	}},
	{"add nonsense", func(ctx context.Context, c *clientv3.Client) (any, error) {
		return nil, addMember(ctx, c, false, "nonsense")
	}},
	{"add nowhere", func(ctx context.Context, c *clientv3.Client) (any, error) { return nil, addMember(ctx, c, false) }},
	{"add the only member", func(ctx context.Context, c *clientv3.Client) (any, error) {
		return nil, addMember(ctx, c, true, "http://127.0.0.1:7777")
	}},
	{"add a learner", func(ctx context.Context, c *clientv3.Client) (any, error) {
		return nil, addMember(ctx, c, true, "http://127.0.0.1:8888")
	}},
	{"add it again", func(ctx context.Context, c *clientv3.Client) (any, error) {
		return nil, addMember(ctx, c, true, "http://127.0.0.1:8888")
	}},
	{"add a second learner", func(ctx context.Context, c *clientv3.Client) (any, error) {
		return nil, addMember(ctx, c, true, "http://127.0.0.1:9999")
	}},
	{"promote the learner", onLearner(func(ctx context.Context, c *clientv3.Client, id uint64) error {
		_, err := c.MemberPromote(ctx, id)
		return err
	})},
	{"update the learner to the member's", onLearner(func(ctx context.Context, c *clientv3.Client, id uint64) error {
		_, err := c.MemberUpdate(ctx, id, []string{"http://127.0.0.1:6666", "http://127.0.0.1:5555"})
		return err
	})},
	{"remove the learner", onLearner(func(ctx context.Context, c *clientv3.Client, id uint64) error {
		_, err := c.MemberRemove(ctx, id)
		return err
	})},
	{"defragment", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.Defragment(ctx, c.Endpoints()[0]) }},

	{"no alarms", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.AlarmList(ctx) }},
	{"raise space", raise(pb.AlarmType_NOSPACE)},
	{"alarms", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.AlarmList(ctx) }},
	{"put without space", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.Put(ctx, "a", "2") }},
	{"txn without space", func(ctx context.Context, c *clientv3.Client) (any, error) {
		return c.Txn(ctx).Then(clientv3.OpTxn(nil, nil, []clientv3.Op{clientv3.OpPut("a", "2")})).Commit()
	}},
	{"grant without space", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.Grant(ctx, 9) }},
	{"delete without space", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.Delete(ctx, "a") }},
	{"status under alarm", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.Status(ctx, c.Endpoints()[0]) }},
	{"raise corruption", raise(pb.AlarmType_CORRUPT)},
	{"delete when corrupt", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.Delete(ctx, "a") }},
	{"compact when corrupt", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.Compact(ctx, 2) }},
	{"get when corrupt", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.KV.Get(ctx, "a") }},
	{"disarm", func(ctx context.Context, c *clientv3.Client) (any, error) {
		return c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	}},
	{"put again", func(ctx context.Context, c *clientv3.Client) (any, error) { return c.Put(ctx, "a", "3") }},
}

// updateMember updates the peer URL of the first member, below clientv3, which
// would refuse a bad one itself. It returns how that went, and what is listed
// then, as an error.
func updateMember(ctx context.Context, c *clientv3.Client, url string) error {
	members, err := c.MemberList(ctx)
	if err != nil {
		return err
	}
	r := &pb.MemberUpdateRequest{ID: members.Members[0].ID, PeerURLs: []string{url}}
	_, err = pb.NewClusterClient(connOf(ctx, c)).MemberUpdate(ctx, r)
	after, listErr := c.MemberList(ctx)
	if listErr != nil {
		return listErr
	}
	return fmt.Errorf("%s, %v", status.Convert(err), after.Members[0].PeerURLs)
}

// addMember adds a member below clientv3, which would refuse a bad URL itself. It returns
// how that went, with the new member and all members but for their ids, as an error.
func addMember(ctx context.Context, c *clientv3.Client, learner bool, urls ...string) error {
	r := &pb.MemberAddRequest{PeerURLs: urls, IsLearner: learner}
	added, err := pb.NewClusterClient(connOf(ctx, c)).MemberAdd(ctx, r)
	if err != nil {
		return errors.New(status.Convert(err).String())
	}
	listed := slices.ContainsFunc(added.Members, func(m *pb.Member) bool { return proto.Equal(m, added.Member) })
	return fmt.Errorf("%v %t %q, listed: %t, of %d", added.Member.PeerURLs, added.Member.IsLearner, added.Member.Name, listed, len(added.Members))
}

// onLearner returns a call about the learner, and what is listed of it then.
func onLearner(call func(ctx context.Context, c *clientv3.Client, id uint64) error) func(context.Context, *clientv3.Client) (any, error) {
	return func(ctx context.Context, c *clientv3.Client) (any, error) {
		learner := func() (*pb.Member, error) {
			members, err := c.MemberList(ctx)
			if err != nil {
				return nil, err
			}
			for _, m := range members.Members {
				if m.IsLearner {
					return m, nil
				}
			}
			return &pb.Member{}, nil
		}
		before, err := learner()
		if err != nil {
			return nil, err
		}
		callErr := call(ctx, c, before.ID)
		after, err := learner()
		return nil, errors.Join(callErr, err, fmt.Errorf("%v %t", after.PeerURLs, after.ID == before.ID))
	}
}

// TestVoters adds voting members, after which a real etcd has no quorum: what it answers to
// membership calls without one, this one does too, and keeps serving.
func TestVoters(t *testing.T) {
	real := startReal(t)
	local := newServer(t, Config{})
	near, far := local.Client().Client, dial(t, newServer(t, Config{})).Client
	ctx := context.WithValue(t.Context(), localConn{}, local.services.LocalConn())
	add := func(learner bool, url string) func(context.Context, *clientv3.Client) error {
		return func(ctx context.Context, c *clientv3.Client) error { return addMember(ctx, c, learner, url) }
	}
	for i, call := range []func(context.Context, *clientv3.Client) error{
		add(false, "http://127.0.0.1:7777"), add(false, "http://127.0.0.1:8888"), add(true, "http://127.0.0.1:8888"),
	} { // and no other call: a list of members waits for the quorum
		want := call(t.Context(), real)
		for name, c := range map[string]*clientv3.Client{"in process": near, "gRPC": far} {
			got := call(ctx, c)
			assert.Equal(t, fmt.Sprint(want), fmt.Sprint(got), "call %d, %s: %v, want %v", i, name, got, want)
		}
	}
	_, err := far.Put(t.Context(), "a", "1")
	assert.NoError(t, err)
}

// removeMember removes the first member, below clientv3, which hides what code
// an error had on the wire.
func removeMember(ctx context.Context, c *clientv3.Client) (any, error) {
	members, err := c.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	r := &pb.MemberRemoveRequest{ID: members.Members[0].ID}
	_, err = pb.NewClusterClient(connOf(ctx, c)).MemberRemove(ctx, r)
	return nil, errors.New(status.Convert(err).String())
}

// raise returns a call that raises an alarm, which clientv3 cannot.
func raise(alarm pb.AlarmType) func(context.Context, *clientv3.Client) (any, error) {
	return func(ctx context.Context, c *clientv3.Client) (any, error) {
		members, err := c.MemberList(ctx)
		if err != nil {
			return nil, err
		}
		r := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: alarm, MemberID: members.Members[0].ID}
		return pb.NewMaintenanceClient(connOf(ctx, c)).Alarm(ctx, r)
	}
}

// localConn is the key of a context for the connection of a client in the process.
type localConn struct{}

// connOf returns what a client is connected with.
func connOf(ctx context.Context, c *clientv3.Client) grpc.ClientConnInterface {
	if conn := c.ActiveConnection(); conn != nil {
		return conn
	}
	return ctx.Value(localConn{}).(grpc.ClientConnInterface)
}

// TestSurface compares what an embedded etcd and this one, in process and over gRPC,
// answer to each of the calls above, but for ids, sizes and how far a log has grown.
func TestSurface(t *testing.T) {
	real := startReal(t)
	local := newServer(t, Config{})
	near, far := local.Client().Client, dial(t, newServer(t, Config{})).Client
	ctx := context.WithValue(t.Context(), localConn{}, local.services.LocalConn())
	ignore := cmp.Options{
		protocmp.Transform(),
		protocmp.IgnoreFields(&pb.ResponseHeader{}, "cluster_id", "member_id", "raft_term"),
		protocmp.IgnoreFields(&pb.StatusResponse{}, "leader", "raftIndex", "raftAppliedIndex", "raftTerm", "dbSize", "dbSizeInUse", "errors"),
		protocmp.IgnoreFields(&pb.Member{}, "ID", "peerURLs", "clientURLs"),
		protocmp.IgnoreFields(&pb.AlarmMember{}, "memberID"),
		protocmp.SortRepeated(func(a, b *pb.AlarmMember) bool { return a.Alarm < b.Alarm }),
		cmpopts.EquateEmpty(),
	}
	for _, tt := range surfaceCalls {
		want, wantErr := tt.call(t.Context(), real)
		for name, c := range map[string]*clientv3.Client{"in process": near, "gRPC": far} {
			got, err := tt.call(ctx, c)
			if fmt.Sprintf("%T %v", wantErr, wantErr) != fmt.Sprintf("%T %v", err, err) {
				t.Errorf("%s, %s: error %T %v, want %T %v", tt.name, name, err, err, wantErr, wantErr)
				continue
			}
			if err != nil {
				continue
			}
			assert.Empty(t, cmp.Diff(message(want), message(got), ignore), "%s, %s: -embedded +this", tt.name, name)
		}
	}
}

// TestNotAnswered makes calls that need what a store in memory lacks: in process and over
// gRPC, all fail alike and say what to do.
func TestNotAnswered(t *testing.T) {
	calls := map[string]func(ctx context.Context, c *clientv3.Client) error{
		"Auth/AuthEnable": func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.AuthEnable(ctx)
			return err
		},
		"Auth/UserAdd": func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.UserAdd(ctx, "u", "p")
			return err
		},
		"Auth/RoleList": func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.RoleList(ctx)
			return err
		},
		"Maintenance/HashKV": func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.HashKV(ctx, c.Endpoints()[0], 0)
			return err
		},
		"Maintenance/Downgrade": func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Downgrade(ctx, clientv3.DowngradeCancel, "")
			return err
		},
		"Maintenance/MoveLeader": func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.MoveLeader(ctx, 7)
			return err
		},
		"Maintenance/Snapshot": func(ctx context.Context, c *clientv3.Client) error {
			file, err := c.Snapshot(ctx)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = io.ReadAll(file)
			return err
		},
	}
	eachClient(t, Config{}, func(t *testing.T, _ *Server, c *kubernetes.Client) {
		for method, call := range calls {
			err := call(t.Context(), c.Client)
			assert.Equal(t, codes.Unimplemented, status.Code(err), "%s: %v", method, err)
			assert.ErrorContains(t, err, "does not answer /etcdserverpb."+method+"; use a real etcd for it")
		}
	})
}

// TestAuthenticate has a client with a user, to whom an etcd without authentication answers as to any.
func TestAuthenticate(t *testing.T) {
	put(t, dialWith(t, newServer(t, Config{}), clientv3.Config{Username: "ann", Password: "secret"}), "k", "v")
}

// message returns the message that a response of clientv3 is.
func message(resp any) any {
	switch r := resp.(type) {
	case proto.Message:
		return r
	case *clientv3.AuthStatusResponse:
		return (*pb.AuthStatusResponse)(r)
	case *clientv3.StatusResponse:
		return (*pb.StatusResponse)(r)
	case *clientv3.MemberListResponse:
		return (*pb.MemberListResponse)(r)
	case *clientv3.AlarmResponse:
		return (*pb.AlarmResponse)(r)
	case *clientv3.DeleteResponse:
		return (*pb.DeleteRangeResponse)(r)
	case *clientv3.PutResponse:
		return (*pb.PutResponse)(r)
	case *clientv3.GetResponse:
		return (*pb.RangeResponse)(r)
	default:
		return fmt.Sprintf("%T", resp) // only a header
	}
}
