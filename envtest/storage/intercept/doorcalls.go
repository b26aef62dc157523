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

// identify returns the point and the key of a call, unless no point is about it.
func identify(method string, request []byte) (point, key string, ok bool) {
	switch method {
	case "/etcdserverpb.KV/Range":
		r := &pb.RangeRequest{}
		ok = proto.Unmarshal(request, r) == nil
		return rangePoint(r), string(r.GetKey()), ok
	case "/etcdserverpb.KV/RangeStream":
		r := &pb.RangeRequest{}
		ok = proto.Unmarshal(request, r) == nil
		return "store/list", string(r.GetKey()), ok
	case "/etcdserverpb.KV/Put":
		r := &pb.PutRequest{}
		ok = proto.Unmarshal(request, r) == nil
		return "store/put", string(r.GetKey()), ok
	case "/etcdserverpb.KV/DeleteRange":
		r := &pb.DeleteRangeRequest{}
		ok = proto.Unmarshal(request, r) == nil
		return "store/delete", string(r.GetKey()), ok
	case "/etcdserverpb.KV/Txn":
		r := &pb.TxnRequest{}
		ok = proto.Unmarshal(request, r) == nil
		point, key = txnIdentity(r)
		return point, key, ok
	case "/etcdserverpb.KV/Compact":
		return "store/compact", "", true
	case "/etcdserverpb.Lease/LeaseGrant":
		return "store/lease-grant", "", true
	}
	return "", "", false
}

func rangePoint(r *pb.RangeRequest) string {
	switch {
	case r.GetCountOnly():
		return "store/count"
	case len(r.GetRangeEnd()) > 0:
		return "store/list"
	default:
		return "store/range"
	}
}

// txnIdentity is the point and the key of a transaction. One that is a write on
// condition of a revision, as upstream's client makes it, is that write.
func txnIdentity(r *pb.TxnRequest) (point, key string) {
	var then pb.RequestOp
	if len(r.GetSuccess()) > 0 {
		then.Request = r.GetSuccess()[0].GetRequest()
	}
	put, del := then.GetRequestPut(), then.GetRequestDeleteRange()
	point, key = "store/txn", string(put.GetKey())+string(del.GetKey())+string(then.GetRequestRange().GetKey())
	if len(r.GetCompare()) > 0 {
		key = string(r.GetCompare()[0].GetKey())
	}
	if len(r.GetCompare()) == 1 && len(r.GetSuccess()) == 1 && r.GetCompare()[0].GetTarget() == pb.Compare_MOD {
		switch {
		case put != nil:
			point = "store/put"
		case del != nil:
			point = "store/delete"
		}
	}
	return point, key
}
