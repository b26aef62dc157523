package configuration

import (
	"context"
	"net/http"

	"snowglobe.test/conformance/suite"
)

var flagCases = suite.Launching([]suite.Case{
	{ID: "S4/bad-flags-are-refused", Failure: true, Test: badFlagsAreRefused,
		Source: "k8s.io/apiserver/pkg/server/options/server_run_options.go, Validate; " +
			"k8s.io/apiserver/pkg/server/options/api_enablement.go",
		Promise: "Negative limits and times, an open CORS expression, a malformed HSTS directive, an unknown flag " +
			"and an unknown gate are refused at the start, by name."},
	{ID: "S3/malformed-ranges-are-refused", Failure: true, Test: malformedRangesAreRefused,
		Source: "k8s.io/kubernetes/cmd/kube-apiserver/app/options/validation.go; " +
			"k8s.io/kubernetes/cmd/kube-apiserver/app/options/options.go",
		Promise: "A service range that is no CIDR, a range of node ports that is none, and an advertised address " +
			"that is none are refused at the start, by their flag."},
	{ID: "S20/impossible-emulation-is-refused", Failure: true, Since: "1.37", Test: impossibleEmulationIsRefused,
		Source: "KEP-4330; k8s.io/apiserver/pkg/server/options/server_run_options.go, " +
			"RuntimeConfigEmulationForwardCompatible; k8s.io/component-base/featuregate/feature_gate.go",
		Promise: "A server that emulates no other release does not start with the APIs of later ones, and none " +
			"starts with a gate that the release it emulates does not have."},
})

func badFlagsAreRefused(ctx context.Context, beside *suite.T) {
	for flag, why := range map[string]string{
		"--max-requests-inflight=-1":    "--max-requests-inflight can not be negative value",
		"--request-timeout=-1s":         "--request-timeout can not be negative value",
		"--shutdown-delay-duration=-1s": "--shutdown-delay-duration can not be negative value",
		"--livez-grace-period=-1s":      "--livez-grace-period can not be a negative value",
		"--goaway-chance=0.5": "--goaway-chance can not be less than 0 or greater " +
			"than 0.02",
		"--cors-allowed-origins=example.com":               "--cors-allowed-origins has an invalid regular expression",
		"--strict-transport-security-directives=unlimited": "--strict-transport-security-directives invalid",
		"--no-such-flag=1":                                 "no-such-flag",
		"--feature-gates=NoSuchGate=true":                  "NoSuchGate",
		"--runtime-config=no.such.group/v1=true":           "no.such.group",
	} {
		beside.Refuses(ctx, why, flag)
	}
	startsWithGoodOnes(ctx, beside)
}

func malformedRangesAreRefused(ctx context.Context, beside *suite.T) {
	for flag, why := range map[string]string{
		"--service-cluster-ip-range=10.0.0.0/33": "service-cluster-ip-range",
		"--service-node-port-range=70000-70001":  "service-node-port-range",
		"--service-node-port-range=32000-31000":  "service-node-port-range",
		"--advertise-address=nowhere":            "advertise-address",
	} {
		beside.Refuses(ctx, why, flag)
	}
	startsWithGoodOnes(ctx, beside)
}

func impossibleEmulationIsRefused(ctx context.Context, beside *suite.T) {
	beside.Refuses(ctx, "RuntimeConfigEmulationForwardCompatible cannot be set",
		"--runtime-config-emulation-forward-compatible")
	beside.Refuses(ctx, "EmulationForwardCompatible cannot be set", "--emulation-forward-compatible")
	beside.Refuses(ctx, "cannot set feature gate WatchListCompression to true, feature is PreAlpha at emulated "+
		"version 1.36", "--emulated-version=1.36", "--feature-gates=WatchListCompression=true")
	startsWithGoodOnes(ctx, beside)
}

// startsWithGoodOnes shows that it was the flags that were refused.
func startsWithGoodOnes(ctx context.Context, beside *suite.T) {
	_, t := beside.Shared(ctx, "plain")
	t.Answered(ctx, "/readyz", http.StatusOK)
}
