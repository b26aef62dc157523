package intercept

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// streams are the methods of etcd whose request or answer has many parts.
var streams = map[string]bool{
	"/etcdserverpb.KV/RangeStream":       true,
	"/etcdserverpb.Watch/Watch":          true,
	"/etcdserverpb.Lease/LeaseKeepAlive": true,
	"/etcdserverpb.Maintenance/Snapshot": true,
}

// identify returns what a call is about; false if no point is about it, or it cannot
// be read. What cannot be read the member may refuse.
func identify(method string, request []byte) (subject, bool) {
	switch method {
	case "/etcdserverpb.KV/Range":
		return read(request, &pb.RangeRequest{}, subjectOfRange)
	case "/etcdserverpb.KV/RangeStream":
		return read(request, &pb.RangeRequest{}, func(r *pb.RangeRequest) subject { return subject{"store/list", string(r.GetKey())} })
	case "/etcdserverpb.KV/Put":
		return read(request, &pb.PutRequest{}, subjectOfPut)
	case "/etcdserverpb.KV/DeleteRange":
		return read(request, &pb.DeleteRangeRequest{}, subjectOfDelete)
	case "/etcdserverpb.KV/Txn":
		return read(request, &pb.TxnRequest{}, func(r *pb.TxnRequest) subject {
			var first subject
			if len(r.GetSuccess()) > 0 {
				first = subjectOfOp(r.GetSuccess()[0])
			}
			return subjectOfTxn(r.GetCompare(), len(r.GetSuccess()), first)
		})
	case "/etcdserverpb.KV/Compact":
		return subject{point: "store/compact"}, true
	case "/etcdserverpb.Lease/LeaseGrant":
		return subject{point: "store/lease-grant"}, true
	}
	return subject{}, false
}

func read[M proto.Message](request []byte, into M, of func(M) subject) (subject, bool) {
	if proto.Unmarshal(request, into) != nil {
		return subject{}, false
	}
	return of(into), true
}

func subjectOfRange(r *pb.RangeRequest) subject {
	return subject{readPoint(r.GetCountOnly(), len(r.GetRangeEnd()) > 0), string(r.GetKey())}
}

func subjectOfPut(r *pb.PutRequest) subject { return subject{"store/put", string(r.GetKey())} }

func subjectOfDelete(r *pb.DeleteRangeRequest) subject {
	return subject{"store/delete", string(r.GetKey())}
}

// subjectOfOp is what one thing is about that a transaction does.
func subjectOfOp(op *pb.RequestOp) subject {
	switch r := op.GetRequest().(type) {
	case *pb.RequestOp_RequestPut:
		return subjectOfPut(r.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return subjectOfDelete(r.RequestDeleteRange)
	case *pb.RequestOp_RequestRange:
		return subjectOfRange(r.RequestRange)
	}
	return subject{point: "store/txn"}
}
