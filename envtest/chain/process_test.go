package chain

import (
	"io"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/capabilities"
)

func mustParse(t *testing.T, flags ...string) *Flags {
	t.Helper()
	parsed, err := ParseFlags(flags)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestJoin takes the process's state over and puts it back, and refuses a second
// member that wants it otherwise.
func TestJoin(t *testing.T) {
	none := func(error) {}
	allowed := capabilities.Get().AllowPrivileged
	gate := utilfeature.DefaultFeatureGate.Enabled(features.WatchList)

	first, err := Join("first", mustParse(t, "--feature-gates=WatchList=false"), io.Discard, none)
	if err != nil {
		t.Fatal(err)
	}
	capabilities.Setup(!allowed, 1)
	if utilfeature.DefaultFeatureGate.Enabled(features.WatchList) {
		t.Error("the feature gate is not set")
	}
	if _, err := Join("other", mustParse(t, "--allow-privileged=false"), io.Discard, none); err == nil || !strings.Contains(err.Error(), "--allow-privileged=false") {
		t.Errorf("a member with other flags: %v", err)
	}
	second, err := Join("second", mustParse(t), io.Discard, none)
	if err != nil {
		t.Errorf("a member with the same flags: %v", err)
	}
	first.Leave()
	if utilfeature.DefaultFeatureGate.Enabled(features.WatchList) {
		t.Error("the state is put back before the last member has left")
	}
	second.Leave()
	second.Leave()
	if utilfeature.DefaultFeatureGate.Enabled(features.WatchList) != gate || utilfeature.DefaultMutableFeatureGate.ExplicitlySet(features.WatchList) {
		t.Error("the feature gate is not put back")
	}
	if capabilities.Get().AllowPrivileged != allowed {
		t.Error("the capabilities are not put back")
	}
}

// TestEnding tells a goroutine that the runtime is about to end from others.
func TestEnding(t *testing.T) {
	const head = "1 @ 0x499730 0x4d3a26\n# labels: {\"snowglobe\":\"cp-28\"}\n"
	end := "#\t0x49972f\truntime.goexit1+0xef\t/usr/local/go/src/runtime/proc.go:4408\n"
	work := "#\t0x4d3a25\tsync.(*WaitGroup).Wait+0x48\t/usr/local/go/src/sync/waitgroup.go:118\n"
	for entry, want := range map[string]bool{head: false, head + end: true, head + work: false, head + end + work: false} {
		if got := ending(entry); got != want {
			t.Errorf("%q: ending is %v", entry, got)
		}
	}
}

// TestMemberOfGoroutine finds the member of a goroutine and of its children.
func TestMemberOfGoroutine(t *testing.T) {
	member, err := Join("labelled", mustParse(t), io.Discard, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer member.Leave()
	child := make(chan *Member)
	member.Go(func() { go func() { child <- memberOfGoroutine() }() })
	if found := <-child; found != member {
		t.Errorf("a goroutine's child belongs to %v", found)
	}
	if found := memberOfGoroutine(); found != nil {
		t.Errorf("the test's own goroutine belongs to %v", found)
	}
	stop := make(chan struct{})
	member.Go(func() { <-stop })
	if left := member.goroutines(); len(left) != 1 || !strings.Contains(left[0], "TestMemberOfGoroutine") {
		t.Errorf("the goroutines of the member: %v", left)
	}
	close(stop)
	if err := member.Join(t.Context()); err != nil {
		t.Error(err)
	}
}
