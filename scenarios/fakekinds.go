package scenarios

import (
	"context"
	"net"
)

// fakeKind is something that an API server calls.
type fakeKind struct {
	name    string
	meaning string
	serve   func(at fakePlace) (*fake, error)
}

// fakePlace is where a fake is, and how it reaches the others.
type fakePlace struct {
	listener net.Listener // the fake's from now on
	host     string
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// The ends of the names of files that flags name, after the host.
const (
	kubeconfigExtension     = ".kubeconfig"
	authenticationExtension = ".authentication.yaml"
	encryptionExtension     = ".encryption.yaml"
	egressExtension         = ".egress.yaml"
	certificateExtension    = ".crt"
)

var fakeKinds = []fakeKind{
	{"admission", "a webhook that validates or changes what is written; by itself it allows all", serveAdmission},
	{"conversion", "a webhook that converts custom resources; by itself it changes nothing but their version", serveConversion},
	{"token-review", "a webhook that knows bearer tokens (`--authentication-token-webhook-config-file`); by itself it knows none", serveTokenReview},
	{"subject-access-review", "a webhook that knows who may do what (`--authorization-webhook-config-file`); by itself it has no opinion", serveSubjectAccessReview},
	{"audit", "a webhook that takes audit events (`--audit-webhook-config-file`)", serveAudit},
	{"oidc", "an OpenID Connect issuer (`--authentication-config=$WORK/HOST.authentication.yaml`), whose tokens \"issue\" makes and whose keys \"rotate\" changes; " +
		"requests have a `path`", serveOIDC},
	{"kms", "a KMS v2 plugin that encrypts Secrets (`--encryption-provider-config=$WORK/HOST.encryption.yaml`), whose keys \"rotate\" changes; " +
		"requests have a `call`, which is status, encrypt or decrypt, and `keyID`; the answer to status has `healthz`, `keyID` and `version`", serveKMS},
	{"kubelet", "a kubelet, at the host that a Node has as its address of the type Hostname; by itself it runs no pod; " +
		"requests have `verb` (containerLogs, exec, or of a page the first part of its path), `namespace`, `pod`, `container`, `command`, `path` and `user`; " +
		"the answer has `logs`, which are lines, `every: 10s` between them and `follow: true` to go on, `stdout`, `stderr` and `exitCode`, or `page`; " +
		"HOST.crt is for `--kubelet-certificate-authority`", serveKubelet},
	{"konnectivity", "a proxy to nodes, webhooks by Service and aggregated servers, over HTTP CONNECT (`--egress-selector-config-file=$WORK/HOST.egress.yaml`); " +
		"requests have an `address`; the answer has `breakAfter`, the bytes after which the tunnel breaks", serveHTTPConnect},
	{"konnectivity-grpc", "the same over konnectivity's gRPC", serveKonnectivityGRPC},
	{"aggregated", "an aggregated API server that serves widgets.example.com/v1, at the host NAME.NAMESPACE.svc, which is the external name of its Service; " +
		"requests have `verb`, `path`, `group`, `version`, `resource`, `namespace`, `name`, `user` and `groups`; the answer is the object that is sent", serveAggregated},
}
