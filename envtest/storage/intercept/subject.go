package intercept

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"snowglobe.test/envtest/fault"
)

// subject is what a call to the store is about.
type subject struct{ point, key string }

// subjectOfOp is what a single operation is about.
func subjectOfOp(op clientv3.Op) subject {
	s := subject{key: string(op.KeyBytes())}
	switch {
	case op.IsPut():
		s.point = fault.StorePut
	case op.IsDelete():
		s.point = fault.StoreDelete
	case op.IsTxn():
		s.point = fault.StoreTxn
	default:
		s.point = readPoint(op.IsCountOnly(), len(op.RangeBytes()) > 0)
	}
	return s
}

// readPoint is the point of a read: of a count, of a range of keys, or of one key.
func readPoint(countOnly, ranges bool) string {
	switch {
	case countOnly:
		return fault.StoreCount
	case ranges:
		return fault.StoreList
	default:
		return fault.StoreRange
	}
}

// subjectOfTxn is what a transaction is about, given the number of its operations and
// the subject of the first. API servers write with "if the key is at revision 7, put
// it": such a transaction counts as its write.
func subjectOfTxn(compares []*pb.Compare, operations int, first subject) subject {
	s := subject{fault.StoreTxn, first.key}
	if len(compares) > 0 {
		s.key = string(compares[0].GetKey())
	}
	isWrite := first.point == fault.StorePut || first.point == fault.StoreDelete
	if isWrite && operations == 1 && len(compares) == 1 && compares[0].GetTarget() == pb.Compare_MOD {
		s.point = first.point
	}
	return s
}

// identify returns what a call to the proxy is about. It returns false if there is no
// point for the method, or if it cannot decode the request, which the member may refuse.
func identify(method string, request []byte) (subject, bool) {
	var message proto.Message
	switch method {
	case pb.KV_Range_FullMethodName, pb.KV_RangeStream_FullMethodName:
		message = &pb.RangeRequest{}
	case pb.KV_Put_FullMethodName:
		message = &pb.PutRequest{}
	case pb.KV_DeleteRange_FullMethodName:
		message = &pb.DeleteRangeRequest{}
	case pb.KV_Txn_FullMethodName:
		message = &pb.TxnRequest{}
	case pb.KV_Compact_FullMethodName:
		return subject{point: fault.StoreCompact}, true
	case pb.Lease_LeaseGrant_FullMethodName:
		return subject{point: fault.StoreLeaseGrant}, true
	default:
		return subject{}, false
	}
	if proto.Unmarshal(request, message) != nil {
		return subject{}, false
	}
	s := subjectOf(message)
	if method == pb.KV_RangeStream_FullMethodName {
		s.point = fault.StoreList
	}
	return s, true
}

// subjectOf is what a request, or one operation of a transaction, is about.
func subjectOf(request any) subject {
	switch r := request.(type) {
	case *pb.RangeRequest:
		return subject{readPoint(r.GetCountOnly(), len(r.GetRangeEnd()) > 0), string(r.GetKey())}
	case *pb.RequestOp_RequestRange:
		return subjectOf(r.RequestRange)
	case *pb.PutRequest:
		return subject{fault.StorePut, string(r.GetKey())}
	case *pb.RequestOp_RequestPut:
		return subjectOf(r.RequestPut)
	case *pb.DeleteRangeRequest:
		return subject{fault.StoreDelete, string(r.GetKey())}
	case *pb.RequestOp_RequestDeleteRange:
		return subjectOf(r.RequestDeleteRange)
	case *pb.TxnRequest:
		var first subject
		if operations := r.GetSuccess(); len(operations) > 0 {
			first = subjectOf(operations[0].GetRequest())
		}
		return subjectOfTxn(r.GetCompare(), len(r.GetSuccess()), first)
	}
	return subject{point: fault.StoreTxn}
}
