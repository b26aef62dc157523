package configuration

import (
	"context"
	"net/http"
	"strings"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var refusedCases = suite.Launching([]suite.Case{
	{ID: "S3/impossible-flags-are-refused", Failure: true, Test: impossibleFlagsAreRefused,
		Source: "k8s.io/kubernetes/cmd/kube-apiserver/app/options/validation.go, Validate; " +
			"k8s.io/kubernetes/pkg/controlplane/apiserver/options/validation.go",
		Promise: "Three service ranges, two of one family, one too small, a node port outside of its range, no " +
			"servers, and the versions that priority and fairness needs turned off are refused at the start; values " +
			"at the edge are not."},
	{ID: "S4/flags-have-limits", Failure: true, Test: flagsHaveLimits,
		Source: "k8s.io/apiserver/pkg/server/options/server_run_options.go, Validate; " +
			"k8s.io/apiserver/pkg/server/options/tracing.go; k8s.io/apiserver/pkg/server/options/egress_selector.go",
		Promise: "Each limit and each time of a server that may not be negative is refused at the start if it is, as " +
			"are files that are not there; zero is not."},
	{ID: "S5/bad-storage-flags-are-refused", Failure: true, Test: badStorageFlags,
		Source: "k8s.io/apiserver/pkg/server/options/etcd.go, Validate",
		Promise: "An unknown backend or media type, overrides that are malformed, cache sizes that are none, and " +
			"reloading without a file to reload are refused at the start."},
	{ID: "S7/bad-authentication-flags-are-refused", Failure: true, Test: badAuthenticationFlags,
		Source: "k8s.io/kubernetes/pkg/kubeapiserver/options/authentication.go, Validate; " +
			"k8s.io/apiserver/pkg/server/options/authentication.go, Validate",
		Promise: "Issuers that are doubled or none, a key set that is not at https, lifetimes outside of their " +
			"bounds, headers without a name and flags of an issuer without the issuer are refused at the start."},
	{ID: "S8/bad-authorization-flags-are-refused", Failure: true, Test: badAuthorizationFlags,
		Source: "k8s.io/kubernetes/pkg/kubeapiserver/options/authorization.go, Validate",
		Promise: "An unknown mode, one that is doubled, one without its file, a file without its mode, and modes " +
			"beside a file of authorizers are refused at the start."},
	{ID: "S9/bad-admission-flags-are-refused", Failure: true, Test: badAdmissionFlags,
		Source: "k8s.io/apiserver/pkg/server/options/admission.go, Validate; " +
			"k8s.io/kubernetes/pkg/kubeapiserver/options/admission.go, Validate",
		Promise: "An unknown plugin, one that is both enabled and disabled, and the old list of plugins beside the " +
			"new ones are refused at the start."},
	{ID: "S19/bad-audit-flags-are-refused", Failure: true, Test: badAuditFlags,
		Source: "k8s.io/apiserver/pkg/server/options/audit.go, Validate",
		Promise: "An unknown mode, format or version of audit events, buffers, batches and rates that are not " +
			"positive, numbers of files that are negative, and policies without rules are refused at the start; " +
			"values at the edge are not."},
})

// A refusal is an error that says why, for a server with flags that are separated by spaces.
type refusal struct{ why, flags string }

// split cuts a text where the next flag begins: the path of a file may have spaces.
func split(flags string) []string {
	all := strings.Split(strings.TrimSpace(flags), " --")
	for i := range all[1:] {
		all[i+1] = "--" + all[i+1]
	}
	return all
}

// refuses asserts that no server starts with flags that are refused, and one does with others.
func refuses(ctx context.Context, beside *suite.T, refusals []refusal, good ...string) {
	for _, r := range refusals {
		beside.Refuses(ctx, r.why, split(r.flags)...)
	}
	_, t := beside.Launch(ctx, envtest.WithFlags(good...))
	t.Answered(ctx, "/livez", http.StatusOK)
}

func impossibleFlagsAreRefused(ctx context.Context, beside *suite.T) {
	refuses(ctx, beside, []refusal{
		{"--service-cluster-ip-range must not contain more than two entries",
			"--service-cluster-ip-range=10.9.0.0/24,fd00:9::/112,10.8.0.0/24"},
		{"must be of different IP family", "--service-cluster-ip-range=10.9.0.0/24,10.8.0.0/24"},
		{"the service cluster IP range must be at least 8 IP addresses", "--service-cluster-ip-range=10.9.0.0/30"},
		{"must match public address family", "--service-cluster-ip-range=fd00:9::/112 " +
			"--advertise-address=192.0.2.77 --endpoint-reconciler-type=lease"},
		{"--kubernetes-service-node-port 65536 must be between 0 and 65535", "--kubernetes-service-node-port=65536"},
		{"--kubernetes-service-node-port -1 must be between 0 and 65535", "--kubernetes-service-node-port=-1"},
		{"doesn't contain 29999", "--kubernetes-service-node-port=29999"},
		{"--apiserver-count should be a positive number", "--apiserver-count=0"},
		{"conflicts with --enable-priority-and-fairness=true",
			"--runtime-config=flowcontrol.apiserver.k8s.io/v1=false"},
		{"conflicts with --enable-priority-and-fairness=true", "--runtime-config=api/ga=false"},
		{"", "--endpoint-reconciler-type=guess"},
	}, "--service-cluster-ip-range=10.9.0.0/29,fd00:9::/112", "--kubernetes-service-node-port=30000",
		"--apiserver-count=1",
		"--advertise-address=192.0.2.77", "--endpoint-reconciler-type=lease", "--enable-priority-and-fairness=false",
		"--runtime-config=flowcontrol.apiserver.k8s.io/v1=false")
}

func flagsHaveLimits(ctx context.Context, beside *suite.T) {
	refuses(ctx, beside, []refusal{
		{"--max-mutating-requests-inflight can not be negative value", "--max-mutating-requests-inflight=-1"},
		{"--min-request-timeout can not be negative value", "--min-request-timeout=-1"},
		{"--storage-initialization-timeout can not be negative value", "--storage-initialization-timeout=-1ns"},
		{"shutdown-watch-termination-grace-period, if provided, can not be a negative value",
			"--shutdown-watch-termination-grace-period=-1ns"},
		{"--shutdown-delay-duration can not be negative value", "--shutdown-delay-duration=-1ns"},
		{"--livez-grace-period can not be a negative value", "--livez-grace-period=-1ns"},
		{"--goaway-chance can not be less than 0 or greater than 0.02", "--goaway-chance=-0.001"},
		{"--goaway-chance can not be less than 0 or greater than 0.02", "--goaway-chance=0.021"},
		{"they must add up to something positive", "--max-requests-inflight=0 --max-mutating-requests-inflight=0"},
		{"empty value in strict-transport-security-directives", "--strict-transport-security-directives=max-age=1,"},
		{"empty value in --cors-allowed-origins", "--cors-allowed-origins=//example.com$,"},
		{"invalid regular expression", "--cors-allowed-origins=//(example.com$"},
		{"invalid runtime-config with only api/all=false", "--runtime-config=api/all=false"},
		{"/nowhere", "--egress-selector-config-file=/nowhere"},
	}, "--max-requests-inflight=1", "--max-mutating-requests-inflight=0", "--min-request-timeout=0",
		"--shutdown-watch-termination-grace-period=0", "--goaway-chance=0.02",
		"--strict-transport-security-directives=max-age=1,includeSubDomains,preload",
		"--cors-allowed-origins=//example.com$,//other.com(:|$)")
}

func badStorageFlags(ctx context.Context, beside *suite.T) {
	refuses(ctx, beside, []refusal{
		{"--storage-backend invalid, allowed values: etcd3", "--storage-backend=etcd2"},
		{`--storage-media-type "text/plain" invalid`, "--storage-media-type=text/plain"},
		{"--encryption-provider-config-automatic-reload must be set with --encryption-provider-config",
			"--encryption-provider-config-automatic-reload=true"},
		{"--etcd-servers-overrides invalid", "--etcd-servers-overrides=/events"},
		{"--etcd-servers-overrides invalid", "--etcd-servers-overrides=events#http://192.0.2.1:2379"},
		{"--etcd-servers-overrides invalid", "--etcd-servers-overrides=/events#http://192.0.2.1:2379;"},
		{"invalid value of watch cache size: pods", "--watch-cache-sizes=pods"},
		{"invalid size of watch cache size: pods#many", "--watch-cache-sizes=pods#many"},
		{"watch cache size cannot be negative: pods#-1", "--watch-cache-sizes=pods#-1"},
	}, "--storage-media-type=application/json", "--watch-cache-sizes=pods#0,deployments.apps#7")
}

func badAuthenticationFlags(ctx context.Context, beside *suite.T) {
	const issuer = "--service-account-issuer="
	refuses(ctx, beside, []refusal{
		{`service-account-issuer "https://a.example.com" is already specified`,
			issuer + "https://a.example.com " + issuer + "https://b.example.com " + issuer + "https://a.example.com"},
		{`was not a valid URL`, issuer + ":nowhere"},
		{"service-account-jwks-uri requires https scheme", "--service-account-jwks-uri=http://example.com/keys"},
		{"service-account-jwks-uri must be a valid URL", "--service-account-jwks-uri=:keys"},
		{"the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
			"--service-account-max-token-expiration=59m59s"},
		{"the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
			"--service-account-max-token-expiration=4294967297s"},
		{"oidc-issuer-url and oidc-client-id must be specified together", "--oidc-client-id=snow"},
		{"oidc-issuer-url and oidc-client-id must be specified together",
			"--oidc-issuer-url=https://issuer.example.com"},
		{"oidc-issuer-url and oidc-client-id must be specified together", "--oidc-username-prefix=snow:"},
		{`empty value in "requestheader-username-headers"`, "--requestheader-username-headers=X-Remote-User,"},
		{`empty value in "requestheader-group-headers"`, "--requestheader-group-headers=X-Remote-Group,"},
		{`empty value in "requestheader-extra-headers-prefix"`,
			"--requestheader-extra-headers-prefix=X-Remote-Extra-,"},
		{"--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header",
			"--requestheader-uid-headers=X-Uid"},
		{"/nowhere", "--token-auth-file=/nowhere"},
		{"/nowhere", "--authentication-token-webhook-config-file=/nowhere"},
		{"/nowhere", "--authentication-config=/nowhere"},
	}, issuer+"https://a.example.com", issuer+"b", "--service-account-max-token-expiration=1h",
		"--requestheader-uid-headers=x-remote-uid,X-Other",
		"--service-account-jwks-uri=https://example.com/keys", "--api-audiences=snow")
}

func badAuthorizationFlags(ctx context.Context, beside *suite.T) {
	kubeconfig := beside.File("authorizer.kubeconfig",
		[]byte(`{"kind":"Config","apiVersion":"v1","current-context":"c",`+
			`"clusters":[{"name":"a","cluster":{"server":"https://authorizer.example.com"}}],`+
			`"contexts":[{"name":"c","context":{"cluster":"a"}}]}`))
	policy := beside.File("policy.jsonl",
		[]byte(`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"jane",`+
			`"readonly":true,"nonResourcePath":"*"}}`+"\n"))
	broken := beside.File("broken.jsonl", []byte("{"))
	config := beside.File("authorizers.yaml",
		[]byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration",`+
			`"authorizers":[{"type":"RBAC","name":"rbac"}]}`))
	refuses(ctx, beside, []refusal{
		{`authorization-mode "Guess" is not a valid mode`, "--authorization-mode=RBAC,Guess"},
		{"has mode specified more than once", "--authorization-mode=RBAC,Node,RBAC"},
		{"authorization-mode ABAC's authorization policy file not passed", "--authorization-mode=ABAC"},
		{"authorization-mode Webhook's authorization config file not passed", "--authorization-mode=Webhook"},
		{"cannot specify --authorization-policy-file without mode ABAC",
			"--authorization-mode=RBAC --authorization-policy-file=" + policy},
		{"cannot specify --authorization-webhook-config-file without mode Webhook",
			"--authorization-mode=RBAC --authorization-webhook-config-file=" + kubeconfig},
		{"--authorization-config can not be specified when --authorization-mode",
			"--authorization-mode=RBAC --authorization-config=" + config},
		{"--authorization-config can not be specified when", "--authorization-webhook-cache-authorized-ttl=1s " +
			"--authorization-config=" + config},
		{"/nowhere", "--authorization-config=/nowhere"},
		{"/nowhere", "--authorization-mode=ABAC --authorization-policy-file=/nowhere"},
		{"broken.jsonl", "--authorization-mode=ABAC --authorization-policy-file=" + broken},
		{"/nowhere", "--authorization-mode=Webhook --authorization-webhook-config-file=/nowhere"},
	}, "--authorization-mode=Node,RBAC,ABAC,Webhook,AlwaysDeny", "--authorization-policy-file="+policy,
		"--authorization-webhook-config-file="+kubeconfig)
}

func badAdmissionFlags(ctx context.Context, beside *suite.T) {
	refuses(ctx, beside, []refusal{
		{`enable-admission-plugins plugin "Guess" is unknown`, "--enable-admission-plugins=Guess"},
		{`disable-admission-plugins plugin "Guess" is unknown`, "--disable-admission-plugins=Guess"},
		{"[ResourceQuota] in enable-admission-plugins and disable-admission-plugins overlapped",
			"--enable-admission-plugins=ResourceQuota --disable-admission-plugins=ResourceQuota"},
		{"flags are mutually exclusive", "--admission-control=AlwaysAdmit " +
			"--enable-admission-plugins=ResourceQuota"},
		{"flags are mutually exclusive", "--admission-control=AlwaysAdmit " +
			"--disable-admission-plugins=ResourceQuota"},
	}, "--enable-admission-plugins=ResourceQuota,AlwaysPullImages",
		"--disable-admission-plugins=LimitRanger,DefaultStorageClass,ServiceAccount")
}

func badAuditFlags(ctx context.Context, beside *suite.T) {
	file := func(text string) string {
		return "--audit-policy-file=" + beside.File("policy.yaml", []byte(text)) + " "
	}
	const policy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":`
	log := file(policy+`[{"level":"Metadata"}]}`) + "--audit-log-path=" + beside.Folder() + "/audit.log "
	batch := log + "--audit-log-mode=batch "
	refuses(ctx, beside, []refusal{
		{"invalid audit log mode guess, allowed modes are", log + "--audit-log-mode=guess"},
		{"invalid audit log format guess, allowed formats are", log + "--audit-log-format=guess"},
		{"invalid group version, allowed versions are", log + "--audit-log-version=audit.k8s.io/v0"},
		{"--audit-log-maxage -1 can't be a negative number", log + "--audit-log-maxage=-1"},
		{"--audit-log-maxbackup -1 can't be a negative number", log + "--audit-log-maxbackup=-1"},
		{"--audit-log-maxsize -1 can't be a negative number", log + "--audit-log-maxsize=-1"},
		{"invalid audit batch log buffer size 0, must be a positive number", batch + "--audit-log-batch-buffer-size=0"},
		{"invalid audit batch log max batch size 0, must be a positive number", batch + "--audit-log-batch-max-size=0"},
		{"invalid audit batch log throttle QPS 0, must be a positive number",
			batch + "--audit-log-batch-throttle-enable=true --audit-log-batch-throttle-qps=0"},
		{"invalid audit batch log throttle burst 0, must be a positive number",
			batch + "--audit-log-batch-throttle-enable=true --audit-log-batch-throttle-qps=1 " +
				"--audit-log-batch-throttle-burst=0"},
		{"invalid audit truncate log max event size 0, must be a positive number",
			log + "--audit-log-truncate-enabled=true --audit-log-truncate-max-event-size=0"},
		{"must be greater than max event size", log + "--audit-log-truncate-enabled=true " +
			"--audit-log-truncate-max-event-size=100 --audit-log-truncate-max-batch-size=99"},
		{"loading audit policy file", "--audit-policy-file=/nowhere --audit-log-path=-"},
		{"loaded illegal policy with 0 rules", file(policy+`[]}`) + "--audit-log-path=-"},
		{"rules[0].level", file(policy+`[{"level":"Guess"}]}`) + "--audit-log-path=-"},
		{"omitStages", file(policy+`[{"level":"Metadata","omitStages":["Guess"]}]}`) + "--audit-log-path=-"},
		{"nonResourceURLs", file(policy+`[{"level":"Metadata","nonResourceURLs":["/a*b"]}]}`) + "--audit-log-path=-"},
		{"nonResourceURLs", file(policy+`[{"level":"Metadata","nonResourceURLs":["/a"],"resources":[{"group":""}]}]}`) +
			"--audit-log-path=-"},
		{"group", file(policy+`[{"level":"Metadata","resources":[{"group":"a/b"}]}]}`) + "--audit-log-path=-"},
		{"resourceNames", file(policy+`[{"level":"Metadata","resources":[{"group":"","resourceNames":["a"]}]}]}`) +
			"--audit-log-path=-"},
		{"/nowhere", file(policy+`[{"level":"Metadata"}]}`) + "--audit-webhook-config-file=/nowhere"},
	}, split(batch+"--audit-log-maxage=0 --audit-log-maxbackup=0 --audit-log-maxsize=0 "+
		"--audit-log-batch-buffer-size=1 --audit-log-batch-max-size=1 "+
		"--audit-log-batch-throttle-enable=true --audit-log-batch-throttle-qps=0.1 --audit-log-batch-throttle-burst=1 "+
		"--audit-log-truncate-enabled=true --audit-log-truncate-max-event-size=100 "+
		"--audit-log-truncate-max-batch-size=100")...)
}
