package fault

import (
	"fmt"
	"math/bits"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var put = Operation{
	Point: "store/put", Server: "alpha", Resource: "configmaps", Namespace: "default", Name: "a",
	Key: "/registry/configmaps/default/a", Caller: "system:apiserver",
}

// The numbers must never change: seeds that people have kept depend on them.
func TestPriorityIsForever(t *testing.T) {
	second := put
	second.Occurrence = 2
	for _, test := range []struct {
		op   Operation
		seed uint64
		want uint64
	}{
		{Operation{}, 0, 0x4197889550f78b0f},
		{put, 0, 0x24b5068d5db759f3},
		{put, 1, 0xc04599ce7268ac06},
		{second, 1, 0x2368721b46b25136},
	} {
		assert.Equal(t, fmt.Sprintf("%#x", test.want), fmt.Sprintf("%#x", test.op.Priority(test.seed)), "%v, seed %d", test.op, test.seed)
	}
}

// Every field of the identity counts, wherever a text ends and the next begins;
// the revision and the time do not.
func TestPriorityCountsTheIdentity(t *testing.T) {
	seen := map[uint64]string{put.Priority(1): "the operation"}
	differs := func(what string, op Operation, seed uint64) {
		p := op.Priority(seed)
		assert.Empty(t, seen[p], "%s has the priority of", what)
		seen[p] = what
	}
	fields := reflect.TypeFor[Operation]()
	for i := range fields.NumField() {
		op := put
		field, name := reflect.ValueOf(&op).Elem().Field(i), fields.Field(i).Name
		switch {
		case name == "Revision" || name == "Arrived":
			op.Revision, op.Arrived = 7, time.Unix(7, 0)
			assert.Equal(t, put.Priority(1), op.Priority(1), "the revision counts, or the time")
		case field.Kind() == reflect.String:
			field.SetString(field.String() + "x")
			differs(name, op, 1)
		default:
			field.SetInt(7)
			differs(name, op, 1)
		}
	}
	differs("another seed", put, 2)
	moved := put
	moved.Resource, moved.Namespace = "configmapsd", "efault"
	differs("a text that moved", moved, 1)
	before := put
	before.Phase = Before
	assert.Equal(t, put.Priority(1), before.Priority(1), "no phase is before")
}

// Priorities of operations that differ little are spread over all bits.
func TestPrioritySpreads(t *testing.T) {
	const n = 4096
	var ones [64]int
	for i := range n {
		op := put
		op.Occurrence = i + 1
		for p := op.Priority(1); p != 0; p &= p - 1 {
			ones[bits.TrailingZeros64(p)]++
		}
	}
	for bit, count := range ones {
		assert.InDelta(t, n/2, count, n/16, "bit %d", bit)
	}
}

func TestOperationString(t *testing.T) {
	for want, op := range map[string]Operation{
		"store/put configmaps default/a by system:apiserver on alpha": put,
		"http/get after nodes n1":                                     {Point: "http/get", Phase: After, Resource: "nodes", Name: "n1"},
		"http/get /healthz":                                           {Point: "http/get", Phase: Before, Key: "/healthz"},
		"hook/crd-informer-synced":                                    {Point: "hook/crd-informer-synced"},
		"informer/pods list":                                          {Point: "informer/pods", Verb: "list"},
		"store/list pods kube-system/":                                {Point: "store/list", Resource: "pods", Namespace: "kube-system"},
	} {
		assert.Equal(t, want, op.String())
	}
}
