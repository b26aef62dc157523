package robustness

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
)

// persisted returns the writes of a record in the order in which they must have
// happened. Upstream reads it from a member's log. There is no log here, but every
// write was answered with the revision that it made or found. Compactions are left
// out: their answers do not say when they happened, and the validators need
// nothing else about them.
func persisted(reports []report.ClientReport) ([]model.EtcdRequest, error) {
	byRevision := make(map[int64][]porcupine.Operation)
	var operations []porcupine.Operation
	for _, r := range reports {
		for _, op := range r.KeyValue {
			request, response := op.Input.(model.EtcdRequest), op.Output.(model.MaybeEtcdResponse)
			operations = append(operations, op)
			switch {
			case request.IsRead() || request.Type == model.Compact || request.Type == model.Defragment:
			case response.Error != "":
				return nil, fmt.Errorf("the store did not do %+v: %s", request, response.Error)
			default:
				byRevision[response.Revision] = append(byRevision[response.Revision], op)
			}
		}
	}
	state := model.DeterministicModel(model.ModelKeys(operations)).Init().(model.EtcdState)
	var log []model.EtcdRequest
	for rev := int64(1); len(byRevision) > 0; rev++ {
		ops := byRevision[rev]
		delete(byRevision, rev)
		slices.SortFunc(ops, byReturn)
		if rev > 1 {
			// One of them made the revision, and the rest found it.
			i := maker(state, ops, rev)
			if i < 0 {
				return nil, fmt.Errorf("no write among %d answered with revision %d can have made it", len(ops), rev)
			}
			made := ops[i]
			ops = slices.Insert(slices.Delete(ops, i, i+1), 0, made)
		}
		for _, op := range ops {
			request := op.Input.(model.EtcdRequest)
			log = append(log, request)
			state, _ = state.Step(request)
		}
	}
	return log, nil
}

func byReturn(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) }

// maker returns which of the operations answered with rev made it from state, or
// -1. The answer to a transaction shows whether it wrote. The answer to a lease
// revocation does not show whether keys were deleted, so one is chosen only if no
// transaction fits.
func maker(state model.EtcdState, ops []porcupine.Operation, rev int64) int {
	for _, transaction := range []bool{true, false} {
		i := slices.IndexFunc(ops, func(op porcupine.Operation) bool {
			request := op.Input.(model.EtcdRequest)
			if (request.Type == model.Txn) != transaction {
				return false
			}
			after, answer := state.Step(request)
			return after.Revision == rev && model.Match(op.Output.(model.MaybeEtcdResponse), answer)
		})
		if i >= 0 {
			return i
		}
	}
	return -1
}

// compacted says whether op is a compaction that was done.
func compacted(op porcupine.Operation) bool {
	response := op.Output.(model.MaybeEtcdResponse)
	return op.Input.(model.EtcdRequest).Type == model.Compact && response.Error == "" && response.ClientError == ""
}
