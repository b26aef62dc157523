package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"golang.org/x/sync/errgroup"
)

// register is a key as a read finds it; its revision is 0 if it does not exist.
type register struct {
	revision int64
	value    string
}

func registerOf(kv *mvccpb.KeyValue) register {
	return register{kv.GetModRevision(), string(kv.GetValue())}
}

// request is a read, or a write that expects a revision: a deletion if it has no value.
type request struct {
	write    bool
	expected int64
	value    string
}

// answer is what came: whether the write succeeded, and how the key is then.
type answer struct {
	succeeded bool
	key       register
}

// recordRegister has several clients read and write one key.
func recordRegister(ctx context.Context, t *T, name string) ([]porcupine.Operation, error) {
	const clients, each = 6, 40
	histories := make([][]porcupine.Operation, clients)
	start := time.Now()
	var working errgroup.Group
	for i := range clients {
		working.Go(func() error {
			var seen register
			for n := range each {
				in := request{}
				if rand.IntN(3) > 0 {
					in = request{write: true, expected: seen.revision, value: fmt.Sprintf("%d-%d", i, n)}
					if seen.revision != 0 && rand.IntN(4) == 0 {
						in.value = ""
					}
				}
				called := time.Since(start)
				out, err := in.send(ctx, t.either(i), t.Key(name))
				if err != nil {
					return err
				}
				histories[i] = append(histories[i], porcupine.Operation{
					ClientId: i, Input: in, Output: out, Call: int64(called), Return: int64(time.Since(start)),
				})
				seen = out.key
			}
			return nil
		})
	}
	err := working.Wait()
	var all []porcupine.Operation
	for _, history := range histories {
		all = append(all, history...)
	}
	return all, err
}

// send makes the request.
func (r request) send(ctx context.Context, client *kubernetes.Client, key string) (answer, error) {
	switch {
	case !r.write:
		resp, err := client.Kubernetes.Get(ctx, key, kubernetes.GetOptions{})
		return answer{key: registerOf(resp.KV)}, err
	case r.value == "":
		resp, err := client.Kubernetes.OptimisticDelete(ctx, key, r.expected, deleteOrTell)
		return answer{resp.Succeeded, registerOf(resp.KV)}, err
	}
	resp, err := client.Kubernetes.OptimisticPut(ctx, key, []byte(r.value), r.expected, putOrTell)
	if resp.Succeeded {
		return answer{true, register{resp.Revision, r.value}}, err
	}
	return answer{key: registerOf(resp.KV)}, err
}

// checkTimeout bounds the search for an order of operations.
const checkTimeout = 20 * time.Second

// checkRegister says why operations are not linearizable, and nothing if they are.
func checkRegister(operations []porcupine.Operation) string {
	result, _ := porcupine.CheckOperationsVerbose(registerModel, operations, checkTimeout)
	switch result {
	case porcupine.Ok:
		return ""
	case porcupine.Illegal:
		return "no order of them explains all answers"
	}
	return fmt.Sprintf("no order of them was found within %s that explains all answers", checkTimeout)
}

// registerModel is how a key should behave.
var registerModel = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		now, in, out := state.(register), input.(request), output.(answer)
		switch {
		case !in.write:
			return out.key == now, now
		case in.expected != now.revision:
			return !out.succeeded && out.key == now, now
		case in.value == "":
			return out.succeeded, register{}
		}
		return out.succeeded && out.key.revision > now.revision, out.key
	},
}
