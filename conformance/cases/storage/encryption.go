package storage

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/fakes/kms"
)

var encryptionCases = suite.Launching([]suite.Case{
	{ID: "S5/encryption-at-rest", Test: encryptionAtRest,
		Source: "k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go; " +
			"k8s.io/apiserver/pkg/storage/value/transformer.go, prefixTransformers",
		Promise: "With an EncryptionConfiguration what it names is stored under a key of its own, other resources " +
			"are not, and clients read both as ever; what was stored before is read as it is."},
	{ID: "S5/encryption-keys-rotate", Failure: true, Test: encryptionKeysRotate,
		Source: "k8s.io/apiserver/pkg/storage/value/transformer.go: the first provider writes, all read; a stale " +
			"one is rewritten",
		Promise: "A new first key is used to write, also what is written without a change, older keys still read, " +
			"and a server without the key answers 500 instead of what it can't read."},
	{ID: "S5/kms-v2-encrypts", Test: kmsV2Encrypts,
		Source: "KEP-3299; k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/envelope.go",
		Promise: "A KMS v2 plugin is asked to encrypt one seed, not each object; its provider's name is on what is " +
			"stored, it is a check of /readyz, and the next server asks it to decrypt the seed and remembers it."},
})

// token is a continue token with that content.
func token(content string) string { return base64.RawURLEncoding.EncodeToString([]byte(content)) }

// encrypting is the flag for a configuration that encrypts Secrets with keys, by name.
func encrypting(t *suite.T, names ...string) envtest.Option {
	return envtest.WithFlags("--encryption-provider-config=" + t.File("encryption.yaml", encryption(names...)))
}

// encryption is a configuration that encrypts Secrets with keys, by name.
func encryption(names ...string) []byte {
	var keys strings.Builder
	for _, name := range names {
		secret := base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("%-32s", name)))
		fmt.Fprintf(&keys, "\n      - {name: %s, secret: %s}", name, secret)
	}
	return fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aescbc:
      keys:%s
  - identity: {}
`, keys.String())
}

// on is the store of a control plane, for another one.
func on(cp *envtest.ControlPlane) envtest.Option {
	return envtest.WithStore(storage.Shared{Backend: cp.Store()})
}

const plaintext = "this is the plaintext"

// secret writes a Secret in the default namespace.
func secret(ctx context.Context, t *suite.T, name string) *corev1.Secret {
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name},
		StringData: map[string]string{"text": plaintext}}
	return suite.Create(ctx, t, t.Kube.CoreV1().Secrets(metav1.NamespaceDefault).Create, object)
}

// reads asserts that a Secret is read back.
func reads(ctx context.Context, t *suite.T, name string) *corev1.Secret {
	read, err := t.Kube.CoreV1().Secrets(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred(), "read Secret %s", name)
	t.Expect(string(read.Data["text"])).To(gomega.Equal(plaintext))
	return read
}

// stored asserts how a Secret lies in the store.
func stored(ctx context.Context, t *suite.T, cp *envtest.ControlPlane, name, prefix string) {
	value := string(entry(ctx, t, cp, "/registry/secrets/default/"+name).Value)
	t.Expect(value).To(gomega.HavePrefix(prefix), "Secret %s in the store", name)
	t.Expect(strings.Contains(value, plaintext)).To(gomega.Equal(prefix == protobuf),
		"the plaintext of Secret %s is in the store", name)
}

func encryptionAtRest(ctx context.Context, t *suite.T) {
	cp, first := t.Launch(ctx)
	early := secret(ctx, first, "early")
	_, second := t.Launch(ctx, on(cp), encrypting(t, "one"))
	secret(ctx, second, "late")
	stored(ctx, t, cp, "early", protobuf)
	stored(ctx, t, cp, "late", "k8s:enc:aescbc:v1:one:")
	reads(ctx, second, "late")
	t.Expect(reads(ctx, second, "early").ResourceVersion).To(gomega.Equal(early.ResourceVersion))
	cms := second.ConfigMaps(ctx)
	cms.Make(ctx, "a")
	t.Expect(string(entry(ctx, t, cp, "/registry/configmaps/"+cms.Namespace+"/a").Value)).
		To(gomega.HavePrefix(protobuf), "a ConfigMap is not named")
	suite.Update(ctx, t, second.Kube.CoreV1().Secrets(metav1.NamespaceDefault).Update, reads(ctx, second, "early"))
	stored(ctx, t, cp, "early", "k8s:enc:aescbc:v1:one:")
	reads(ctx, second, "early")
}

func encryptionKeysRotate(ctx context.Context, t *suite.T) {
	cp, first := t.Launch(ctx, encrypting(t, "one"))
	secret(ctx, first, "old")
	secret(ctx, first, "rewritten")
	_, second := t.Launch(ctx, on(cp), encrypting(t, "two", "one"))
	before := reads(ctx, second, "rewritten")
	after, err := second.Kube.CoreV1().Secrets(metav1.NamespaceDefault).Update(ctx, before, metav1.UpdateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(after.ResourceVersion).NotTo(gomega.Equal(before.ResourceVersion), "it was written")
	stored(ctx, t, cp, "old", "k8s:enc:aescbc:v1:one:")
	stored(ctx, t, cp, "rewritten", "k8s:enc:aescbc:v1:two:")
	reads(ctx, second, "old")
	reads(ctx, second, "rewritten")

	// The first server has no key two, and does not answer with what it can't read.
	got := first.Answered(ctx, "/api/v1/namespaces/default/secrets/rewritten", http.StatusInternalServerError)
	t.Expect(string(got.Body)).NotTo(gomega.ContainSubstring(base64.StdEncoding.EncodeToString([]byte(plaintext))))
	reads(ctx, first, "old")
}

func kmsV2Encrypts(ctx context.Context, t *suite.T) {
	network := &suite.Network{}
	plugin := kms.Serve(network.At("/@conformance"), kms.Config{})
	t.Cleanup(plugin.Stop)
	config, err := plugin.EncryptionConfiguration("conformance", 3*time.Second, "secrets")
	t.Must(err, "configure encryption")
	opts := []envtest.Option{network.Option(), envtest.WithFlags("--encryption-provider-config=" +
		t.File("kms.yaml", config))}
	cp, first := t.Launch(ctx, opts...)
	secret(ctx, first, "one")
	secret(ctx, first, "two")
	stored(ctx, t, cp, "one", "k8s:enc:kms:v2:conformance:")
	reads(ctx, first, "one")
	t.Expect(plugin.Encrypt.Calls()).To(gomega.HaveLen(1), "the plugin encrypts the seed of the keys")
	t.Expect(plugin.Decrypt.Calls()).To(gomega.BeEmpty(), "the server knows the seed")
	first.Answered(ctx, "/readyz/kms-providers", http.StatusOK)
	_, second := t.Launch(ctx, append(opts, on(cp))...)
	reads(ctx, second, "one")
	asked := plugin.Decrypt.Calls()
	t.Expect(asked).NotTo(gomega.BeEmpty(), "the next server has to ask for the seed")
	t.Expect(asked[0].Request.KeyID).To(gomega.Equal("key-1"))
	reads(ctx, second, "two")
	reads(ctx, second, "one")
	t.Expect(plugin.Decrypt.Calls()).To(gomega.HaveLen(len(asked)), "it remembers the seed")
}
