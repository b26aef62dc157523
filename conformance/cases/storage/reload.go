package storage

import (
	"context"
	"strings"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var reloadCases = suite.Launching([]suite.Case{
	{ID: "S5/encryption-configuration-is-reloaded", Waits: true, Failure: true, Test: encryptionIsReloaded,
		Source: "KEP-3299; k8s.io/apiserver/pkg/server/options/encryptionconfig/controller/controller.go, " +
			"processWorkItem; k8s.io/apiserver/pkg/server/options/encryptionconfig/metrics/metrics.go",
		Promise: "With --encryption-provider-config-automatic-reload a new first key is used to write without a " +
			"restart, and older keys still read; a file that is no configuration is counted as a failed reload, and " +
			"the keys of before go on."},
})

func encryptionIsReloaded(ctx context.Context, t *suite.T) {
	file := t.File("encryption.yaml", encryption("one"))
	cp, other := t.Launch(ctx, envtest.WithFlags("--encryption-provider-config="+file,
		"--encryption-provider-config-automatic-reload=true"))
	secret(ctx, other, "old")
	stored(ctx, t, cp, "old", "k8s:enc:aescbc:v1:one:")
	failures, successes := other.Reloads(ctx, "encryption", "failure"), other.Reloads(ctx, "encryption", "success")
	t.Replace(file, []byte("no configuration")) // the server looks once a minute
	other.UntilReloads(ctx, "encryption", "failure", gomega.BeNumerically(">", failures), "failed reloads")
	reads(ctx, other, "old")
	secret(ctx, other, "meanwhile")
	stored(ctx, t, cp, "meanwhile", "k8s:enc:aescbc:v1:one:")
	t.Expect(other.Reloads(ctx, "encryption", "success")).To(gomega.Equal(successes), "successful reloads")

	t.Replace(file, encryption("two", "one"))
	t.Eventually(ctx, func() string {
		suite.Update(ctx, t, other.Kube.CoreV1().Secrets(metav1.NamespaceDefault).Update, reads(ctx, other, "old"))
		prefix, _, _ := strings.Cut(string(entry(ctx, t, cp, "/registry/secrets/default/old").Value), ":v1:two:")
		return prefix
	}).WithPolling(time.Second).Should(gomega.Equal("k8s:enc:aescbc"), "what is written with the new key")
	secret(ctx, other, "new")
	stored(ctx, t, cp, "new", "k8s:enc:aescbc:v1:two:")
	stored(ctx, t, cp, "meanwhile", "k8s:enc:aescbc:v1:one:")
	for _, name := range []string{"old", "meanwhile", "new"} {
		reads(ctx, other, name)
	}
	other.UntilReloads(ctx, "encryption", "success", gomega.Equal(successes+1), "successful reloads")
}
