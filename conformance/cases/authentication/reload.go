package authentication

import (
	"context"
	"net/http"
	"time"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/fakes/oidc"
)

const reloaded = "KEP-3331; k8s.io/kubernetes/pkg/kubeapiserver/options/authentication.go, ApplyTo: WatchUntil"

// reloads are counted by a metric of the process: by what all of its servers do.
const reloads = "reloads of authentication"

var reloadCases = suite.Launching([]suite.Case{
	{ID: "S7/issuers-are-reloaded", Failure: true, Apart: reloads, Waits: true, Test: issuersAreReloaded,
		Source: reloaded,
		Promise: "When the file of --authentication-config changes, tokens of an issuer that it names now come in, " +
			"and those of one that it does not name any more are answered 401; other credentials are not affected."},
	{ID: "S7/broken-configuration-changes-nothing", Failure: true, Apart: reloads, Waits: true,
		Test: brokenConfigurationChangesNothing,
		Source: reloaded + "; k8s.io/apiserver/pkg/apis/apiserver/validation/validation.go, " +
			"ValidateAuthenticationConfiguration; " +
			"k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics/metrics.go",
		Promise: "A file of --authentication-config that is no configuration, not a valid one, or changes what is " +
			"anonymous is counted once as a failed reload, and what was before holds; a good one after it is " +
			"followed, and counted as a success."},
	{ID: "S7/broken-configuration-is-refused", Failure: true, Test: brokenConfigurationIsRefused,
		Source: "KEP-3331; k8s.io/apiserver/pkg/apis/apiserver/validation/validation.go; " +
			"k8s.io/kubernetes/pkg/kubeapiserver/options/authentication.go, Validate",
		Promise: "A server does not start with an authentication configuration that names an issuer twice, an issuer " +
			"without TLS, no audience or no user name, or beside flags for an issuer: the error names the field or " +
			"the flag."},
})

// patient gives a server the time to stop that it needs after a reload: half a minute after its
// end it deletes the metrics of issuers that are gone.
var patient = envtest.WithTimeouts(0, 2*time.Minute)

// twoIssuers launches a control plane whose file names the issuer of jane's token, and not the second,
// which is the issuer of joe's.
func twoIssuers(ctx context.Context, t *suite.T) (file string, second *oidc.Issuer, other, jane, joe *suite.T) {
	first := suite.Serve(t, "first", oidc.Serve)
	second = suite.Serve(t, "second", oidc.Serve)
	file = t.File("authentication.yaml", first.AuthenticationConfiguration("controlplane", "snow"))
	_, other = t.Launch(ctx, patient, envtest.WithFlags("--authentication-config="+file))
	jane = other.WithToken(issue(t, first, nil))
	joe = other.WithToken(issue(t, second, func(token *oidc.Token) { token.Subject = "joe" }))
	untilKnown(ctx, jane, "jane")
	return file, second, other, jane, joe
}

func issuersAreReloaded(ctx context.Context, t *suite.T) {
	file, second, other, jane, joe := twoIssuers(ctx, t)
	refused(ctx, joe, "the file does not name the issuer")
	t.Replace(file, second.AuthenticationConfiguration("controlplane", "snow"))
	untilKnown(ctx, joe, "joe")
	untilRefused(ctx, jane, "the file does not name the issuer any more")
	other.Answered(ctx, "/api/v1/nodes", http.StatusOK)
	other.WithToken("").Answered(ctx, "/version", http.StatusOK)
}

func brokenConfigurationChangesNothing(ctx context.Context, t *suite.T) {
	file, second, other, jane, joe := twoIssuers(ctx, t)
	reloaded := func(status string) float64 { return other.Reloads(ctx, "authentication", status) }
	good := string(second.AuthenticationConfiguration("controlplane", "snow"))
	for _, broken := range []string{
		"no configuration",
		good[:1] + `"anonymous":{"enabled":false},` + good[1:],
		string(second.AuthenticationConfiguration("nowhere", "snow")),
	} {
		before, successes := reloaded("failure"), reloaded("success")
		t.Replace(file, []byte(broken))
		other.UntilReloads(ctx, "authentication", "failure", gomega.Equal(before+1), "failures with %s", broken)
		t.Expect(reloaded("success")).To(gomega.Equal(successes), "successes with %s", broken)
		t.Expect(jane.MustWhoAmI(ctx).Username).To(gomega.Equal("jane"), "with %s", broken)
		refused(ctx, joe, "the file is broken")
	}
	failures, before := reloaded("failure"), reloaded("success")
	t.Replace(file, []byte(good))
	untilKnown(ctx, joe, "joe")
	other.UntilReloads(ctx, "authentication", "success", gomega.Equal(before+1), "successes")
	t.Expect(reloaded("failure")).To(gomega.Equal(failures), "what is broken fails once")
	untilRefused(ctx, jane, "the file does not name the issuer any more")
}

func brokenConfigurationIsRefused(ctx context.Context, t *suite.T) {
	issuer := func(url, more, mappings string) string {
		return `{"issuer":{"url":"` + url + `"` + more + `},"claimMappings":{` + mappings + `}}`
	}
	const url, audience, name = "https://issuer.example.com", `,"audiences":["snow"]`,
		`"username":{"claim":"sub","prefix":""}`
	good := issuer(url, audience, name)
	for why, issuers := range map[string]string{
		"jwt[1].issuer.url":             good + "," + good,
		"jwt[0].issuer.url":             issuer("http://issuer.example.com", audience, name),
		"jwt[0].issuer.audiences":       issuer(url, "", name),
		"jwt[0].claimMappings.username": issuer(url, audience, ""),
	} {
		file := t.File("authentication.yaml",
			[]byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","jwt":[`+issuers+
				`]}`))
		t.Expect(t.NotLaunched(ctx, envtest.WithFlags("--authentication-config="+file))).
			To(gomega.ContainSubstring(why), issuers)
	}
	file := t.File("authentication.yaml",
		[]byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","jwt":[`+good+`]}`))
	t.Expect(t.NotLaunched(ctx, envtest.WithFlags("--authentication-config="+file, "--oidc-issuer-url="+url,
		"--oidc-client-id=snow"))).
		To(gomega.ContainSubstring("oidc"), "a file and flags")
	_, plain := t.Shared(ctx, "plain")
	plain.Answered(ctx, "/readyz", http.StatusOK)
}
