package etcd

import (
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestReach fails when clientv3 no longer has the fields that reach.go uses.
func TestReach(t *testing.T) {
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("clientv3 has changed: %v", r)
		}
	}()
	boom := errors.New("boom")
	if resp := failedWatch(boom); !errors.Is(resp.Err(), boom) {
		t.Errorf("the error of a failed watch is %v", resp.Err())
	}
	if resp := failedStream(boom); !errors.Is(resp.Err(), boom) {
		t.Errorf("the error of a failed stream is %v", resp.Err())
	}
	op := clientv3.OpGet("a", clientv3.WithSort(clientv3.SortByVersion, clientv3.SortDescend))
	if target, order := sortOf(op); target != clientv3.SortByVersion || order != clientv3.SortDescend {
		t.Errorf("sort is %v %v", target, order)
	}
	c := clientv3.NewCtxClient(t.Context())
	setEndpoints(c, "a")
	c.SetEndpoints("b", "c")
	if got := c.Endpoints(); len(got) != 2 || got[1] != "c" {
		t.Errorf("endpoints are %v", got)
	}
}
