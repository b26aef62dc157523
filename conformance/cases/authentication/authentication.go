// Package authentication has the cases about whom the server takes a client for: certificates,
// tokens of all kinds, front proxies and the anonymous. SelfSubjectReview tells who a client is.
// Issuers and webhooks are those of the tests.
package authentication

import (
	"context"
	"slices"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
)

// Cases are the cases of this area.
var Cases = slices.Concat(anybodyCases, accountCases, boundCases, certificateCases, bootstrapCases, webhookCases,
	issuerCases, publishedCases, reloadCases)

// refused asserts that the server does not know who the target is.
func refused(ctx context.Context, t *suite.T, why string) {
	t.Expect(suite.ErrorOf(t.WhoAmI(ctx))).To(suite.BeStatus(suite.Unauthorized), why)
}

// untilRefused is refused for what the server learns from a watch, or remembers a while.
func untilRefused(ctx context.Context, t *suite.T, why string) {
	t.Eventually(ctx, func() error { _, err := t.WhoAmI(ctx); return err }).
		Should(suite.BeStatus(suite.Unauthorized), why)
}

// untilKnown waits until the server takes the target for a user.
func untilKnown(ctx context.Context, t *suite.T, user string) {
	t.Eventually(ctx, func() string { info, _ := t.WhoAmI(ctx); return info.Username }).Should(gomega.Equal(user))
}
