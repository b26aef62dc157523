package chain

import (
	"io"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/capabilities"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"

	"snowglobe.test/envtest/process"
)

func mustParse(t *testing.T, flags ...string) *Flags {
	t.Helper()
	parsed, err := ParseFlags(flags)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestCapabilities has a program that has set or only read the capabilities before
// the first server sets them, which upstream lets happen once in a process.
func TestCapabilities(t *testing.T) {
	t.Cleanup(capabilities.ResetForTest)
	for name, stranger := range map[string]func(){
		"set":  func() { capabilities.Setup(false, 5) },
		"read": func() { capabilities.Get() },
	} {
		capabilities.ResetForTest()
		stranger()
		before := capabilities.Get()
		member, err := process.Join(name, mustParse(t).Process(), io.Discard, nil)
		if err != nil {
			t.Fatal(err)
		}
		capabilities.Setup(true, 7) // as upstream does when it makes a server
		if got := capabilities.Get(); !got.AllowPrivileged || got.PerConnectionBandwidthLimitBytesPerSec != 7 {
			t.Errorf("%s before: the server's capabilities are %+v", name, got)
		}
		member.Leave()
		after := capabilities.Get()
		if after.AllowPrivileged != before.AllowPrivileged || after.PerConnectionBandwidthLimitBytesPerSec != before.PerConnectionBandwidthLimitBytesPerSec {
			t.Errorf("%s before: capabilities %+v, and after the server %+v", name, before, after)
		}
	}
}

// TestRenewal makes the renewals of identity leases rare while there are servers, all of
// which agree on it.
func TestRenewal(t *testing.T) {
	before := controlplaneapiserver.IdentityLeaseRenewIntervalPeriod
	quiet, err := ParseFlagsWithoutHousekeeping(nil)
	if err != nil {
		t.Fatal(err)
	}
	member, err := process.Join("quiet", quiet.Process(), io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := controlplaneapiserver.IdentityLeaseRenewIntervalPeriod; got != rareRenewal {
		t.Errorf("leases are renewed every %s, want %s", got, rareRenewal)
	}
	if _, err := process.Join("busy", mustParse(t).Process(), io.Discard, nil); err == nil || !strings.Contains(err.Error(), "housekeeping") {
		t.Errorf("a server with housekeeping beside one without: %v", err)
	}
	member.Leave()
	if got := controlplaneapiserver.IdentityLeaseRenewIntervalPeriod; got != before {
		t.Errorf("leases are renewed every %s afterwards, want %s", got, before)
	}
}

// TestProcessFlags hands on what upstream keeps once in a process.
func TestProcessFlags(t *testing.T) {
	got := mustParse(t, "--feature-gates=WatchList=false", "--allow-privileged=false", "--max-connection-bytes-per-sec=7", "--contention-profiling", "-v=4").Process()
	if want := `feature gates "WatchList=false", --allow-privileged=false, --max-connection-bytes-per-sec=7`; got.String() != want {
		t.Errorf("flags are %s, want %s", got, want)
	}
	if got.Verbosity != 4 || !got.ContentionProfiling {
		t.Errorf("verbosity is %d, contention profiling %t", got.Verbosity, got.ContentionProfiling)
	}
}
