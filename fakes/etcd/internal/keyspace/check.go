package keyspace

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/pkg/v3/adt"
	"google.golang.org/protobuf/proto"
)

// requestHeaderBytes is what etcd's envelope with a request id adds to a request.
const requestHeaderBytes = 16

// checkSize refuses a write request that is larger than etcd would propose.
// hint is a cheap lower bound of its size.
func (s *Store) checkSize(m proto.Message, hint int) error {
	// Encoding can't quadruple the size, so only larger requests are measured exactly.
	if hint < s.cfg.MaxRequestBytes/4 {
		return nil
	}
	if proto.Size(m)+requestHeaderBytes > s.cfg.MaxRequestBytes {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}

func checkRange(r *pb.RangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	_, order := pb.RangeRequest_SortOrder_name[int32(r.SortOrder)]
	_, target := pb.RangeRequest_SortTarget_name[int32(r.SortTarget)]
	if !order || !target {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	return nil
}

func checkPut(r *pb.PutRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	if r.IgnoreValue && len(r.Value) != 0 {
		return rpctypes.ErrGRPCValueProvided
	}
	if r.IgnoreLease && r.Lease != 0 {
		return rpctypes.ErrGRPCLeaseProvided
	}
	return nil
}

func checkDelete(r *pb.DeleteRangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}

// checkTxn checks the form of a transaction that may have maxOps operations.
func checkTxn(r *pb.TxnRequest, maxOps int) error {
	ops := max(len(r.Compare), len(r.Success), len(r.Failure))
	if ops > maxOps {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, c := range r.Compare {
		if len(c.Key) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	for _, branch := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range branch {
			if err := checkOp(op, maxOps-ops); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkOp(op *pb.RequestOp, maxOps int) error {
	switch v := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		return checkRange(v.RequestRange)
	case *pb.RequestOp_RequestPut:
		return checkPut(v.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return checkDelete(v.RequestDeleteRange)
	case *pb.RequestOp_RequestTxn:
		return checkTxn(v.RequestTxn, maxOps)
	default:
		return rpctypes.ErrGRPCKeyNotFound
	}
}

// checkOverlap refuses a branch that would put a key twice, or put and delete it,
// and returns what it puts and deletes, nested branches included. What etcd lets
// through, such as a put in one nested transaction and its deletion in a later
// one, depends on the order in which it collects, so the order here is the same.
func checkOverlap(ops []*pb.RequestOp) (map[string]struct{}, adt.IntervalTree, error) {
	dels := adt.NewIntervalTree()
	for _, op := range ops {
		if del := op.GetRequestDeleteRange(); del != nil {
			iv := adt.NewStringAffinePoint(string(del.Key))
			if len(del.RangeEnd) != 0 {
				iv = adt.NewStringAffineInterval(string(del.Key), string(del.RangeEnd))
			}
			dels.Insert(iv, struct{}{})
		}
	}
	puts := make(map[string]struct{})
	for _, op := range ops {
		if err := addNested(op.GetRequestTxn(), puts, dels); err != nil {
			return nil, nil, err
		}
	}
	for _, op := range ops {
		if put := op.GetRequestPut(); put != nil {
			if err := addPut(string(put.Key), puts, dels, nil); err != nil {
				return nil, nil, err
			}
		}
	}
	return puts, dels, nil
}

// addNested adds what both branches of a nested transaction do to puts and
// dels. The branches may put the same key, because only one of them will run.
func addNested(r *pb.TxnRequest, puts map[string]struct{}, dels adt.IntervalTree) error {
	thenPuts, thenDels, err := checkOverlap(r.GetSuccess())
	if err != nil {
		return err
	}
	elsePuts, elseDels, err := checkOverlap(r.GetFailure())
	if err != nil {
		return err
	}
	for key := range thenPuts {
		if err := addPut(key, puts, dels, nil); err != nil {
			return err
		}
	}
	for key := range elsePuts {
		if err := addPut(key, puts, dels, thenPuts); err != nil {
			return err
		}
	}
	everything := adt.NewStringAffineInterval("\x00", "")
	dels.Union(thenDels, everything)
	dels.Union(elseDels, everything)
	return nil
}

// addPut adds key to puts. It refuses a key that dels has, or that puts has and allowed has not.
func addPut(key string, puts map[string]struct{}, dels adt.IntervalTree, allowed map[string]struct{}) error {
	if _, twice := puts[key]; twice {
		if _, ok := allowed[key]; !ok {
			return rpctypes.ErrGRPCDuplicateKey
		}
	}
	if dels.Intersects(adt.NewStringAffinePoint(key)) {
		return rpctypes.ErrGRPCDuplicateKey
	}
	puts[key] = struct{}{}
	return nil
}
