package fakes

import (
	"context"
	"net"
)

// fakeKind is something that an API server calls.
type fakeKind struct {
	name    string
	meaning string
	answers string // what "when" and "answer" can have; of a webhook it is in the API
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
	{"admission", "a webhook that validates or changes what is written; by default it allows everything", "", serveAdmission},
	{"conversion", "a webhook that converts custom resources; by default it changes only their version", "", serveConversion},
	{"token-review", "a webhook that authenticates bearer tokens (`--authentication-token-webhook-config-file`); by default it knows none", "", serveTokenReview},
	{"subject-access-review", "a webhook that knows who may do what (`--authorization-webhook-config-file`); by default it has no opinion", "", serveSubjectAccessReview},
	{"audit", "a webhook that receives audit events (`--audit-webhook-config-file`)", "", serveAudit},
	{"oidc", `an OpenID Connect issuer, whose tokens "issue-token" makes and whose keys "rotate-key" changes (` + "`--authentication-config=$WORK/HOST.authentication.yaml`)",
		"`when` has the `path`, which is /keys or that of the discovery document, and `answer` is the document", serveOIDC},
	{"kms", `a KMS v2 plugin for Secrets, whose keys "rotate-key" changes (` + "`--encryption-provider-config=$WORK/HOST.encryption.yaml`)",
		"`when` has the `call`, which is status, encrypt or decrypt, and for decrypt the `keyID`; the `answer` to status has `healthz`, `keyID` and `version`", serveKMS},
	{"kubelet", "a kubelet, at a Node address of type Hostname or InternalIP (`--kubelet-certificate-authority=$WORK/HOST.crt`); by default it runs no pods. " +
		"Give it an IP if a node's own pages are requested: upstream looks names up in DNS first",
		"`when` has the `verb` (which is containerLogs, exec, portForward or, for a page, the first part of its path), `namespace`, `pod`, `container`, `command`, `path` and `user`; " +
			"`answer` has `logs`, which are lines, with `every: 10s` between them and `follow: true` to keep the container running after the last; or `stdout`, `stderr` and `exitCode`; or `forward`, what a port sends; or a `page`", serveKubelet},
	{"konnectivity", "a proxy over HTTP CONNECT to the other fakes, for nodes, Services and aggregated servers (`--egress-selector-config-file=$WORK/HOST.egress.yaml`)",
		"`when` has the `address`, and `answer` has `breakAfter`, the number of bytes after which the tunnel breaks", serveHTTPConnect},
	{"konnectivity-grpc", "the same over konnectivity's gRPC", "", serveKonnectivityGRPC},
	{"aggregated", "an aggregated API server that serves widgets of example.com/v1, at the host NAME.NAMESPACE.svc, which its Service has as its external name",
		"`when` has the `verb`, `path`, `group`, `version`, `resource`, `namespace`, `name`, `user` and `groups`, and `answer` is the object that is sent", serveAggregated},
}
