package authentication

import (
	"context"
	"net/http"
	"time"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var certificateCases = []suite.Case{
	{ID: "S7/certificate-names-user-and-groups", Level: suite.Core, Needs: suite.Launch,
		Test:   certificateNamesUserAndGroups,
		Source: "k8s.io/apiserver/pkg/authentication/request/x509/x509.go, CommonNameUserConversion",
		Promise: "The common name of a client certificate is the user and its organizations are the groups, and " +
			"extra has the certificate's fingerprint."},
	{ID: "S7/expired-certificate-is-401", Level: suite.Core, Failure: true, Needs: suite.Launch,
		Test:    expiredCertificateIs401,
		Source:  "k8s.io/apiserver/pkg/authentication/request/x509/x509.go, AuthenticateRequest",
		Promise: "A client whose certificate has expired is answered 401, and not taken for an anonymous one."},
	{ID: "S7/front-proxy-headers-need-a-front-proxy", Failure: true, Test: frontProxyHeadersNeedAFrontProxy,
		Source: "k8s.io/apiserver/pkg/authentication/request/x509/x509.go, Verifier; " +
			"k8s.io/apiserver/pkg/authentication/request/headerrequest/requestheader.go",
		Promise: "Headers in which a front proxy names a user, groups, a UID and extra are ignored when they come " +
			"from anybody else, with credentials or without."},
}

// certified returns a target that shows a client certificate.
func certified(t *suite.T, cp *envtest.ControlPlane, validity time.Duration, user string, groups ...string) *suite.T {
	return t.With(cp.NewClient().Config(envtest.User(user, groups...), envtest.Certificate(validity)))
}

func certificateNamesUserAndGroups(ctx context.Context, t *suite.T) {
	cp, other := t.Shared(ctx, "plain")
	info := certified(other, cp, time.Hour, "jane", "dev", "ops").MustWhoAmI(ctx)
	t.Expect(info).To(gomega.And(gomega.HaveField("Username", "jane"), gomega.HaveField("UID", ""),
		gomega.HaveField("Groups", []string{"dev", "ops", "system:authenticated"})))
	t.Expect(info.Extra).To(gomega.HaveLen(1))
	t.Expect(info.Extra).To(gomega.HaveKeyWithValue("authentication.kubernetes.io/credential-id",
		gomega.ConsistOf(gomega.MatchRegexp(`^X509SHA256=[0-9a-f]{64}$`))))
	t.Expect(certified(other, cp, time.Hour, "joe").MustWhoAmI(ctx).Groups).
		To(gomega.Equal([]string{"system:authenticated"}))
	certified(other, cp, time.Hour, "root", "system:masters").Answered(ctx, "/api/v1/nodes", http.StatusOK)
}

func expiredCertificateIs401(ctx context.Context, t *suite.T) {
	cp, other := t.Shared(ctx, "plain")
	old := certified(other, cp, -time.Minute, "jane")
	t.ExpectStatus(old.Get(ctx, "/version"), suite.Unauthorized)
	refused(ctx, old, "the certificate has expired")
	t.Expect(certified(other, cp, time.Hour, "jane").MustWhoAmI(ctx).Username).
		To(gomega.Equal("jane"), "with a new one")
}

func frontProxyHeadersNeedAFrontProxy(ctx context.Context, t *suite.T) {
	header := map[string]string{"X-Remote-User": "system:admin", "X-Remote-Group": "system:masters",
		"X-Remote-Uid": "u-1", "X-Remote-Extra-Project": "snow"}
	got := t.WithToken("").Ask(ctx, suite.Request{Path: "/api/v1/nodes", Header: header})
	t.Expect(t.ExpectStatus(got, suite.Forbidden).Message).To(gomega.ContainSubstring(`User "system:anonymous" cannot`))
	t.Account(ctx, "robot")
	robot := t.WithToken(t.Token(ctx, "robot", authenticationv1.TokenRequestSpec{}))
	t.Expect(t.UserIn(robot.AskWhoAmI(ctx, header))).To(gomega.Equal(robot.MustWhoAmI(ctx)))
	got = robot.Ask(ctx, suite.Request{Path: "/api/v1/nodes", Header: header})
	t.ExpectStatus(got, suite.Forbidden)
	got = t.WithToken("s7-nobody-knows-this").Ask(ctx, suite.Request{Path: "/version", Header: header})
	t.ExpectStatus(got, suite.Unauthorized)
}
