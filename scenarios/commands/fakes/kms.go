package fakes

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"snowglobe.test/fakes/kms"
)

// kmsTimeout is how long an API server waits for a plugin, upstream's default.
const kmsTimeout = 3 * time.Second

// kmsCall is what an answer's "when" is compared with.
type kmsCall struct {
	Call  string `json:"call"`
	KeyID string `json:"keyID,omitempty"` // of decrypt
}

func serveKMS(at fakePlace) (*fake, error) {
	plugin := kms.Serve(at.listener, kms.Config{})
	config, err := plugin.EncryptionConfiguration(at.host, kmsTimeout, "secrets")
	if err != nil {
		return nil, err
	}
	return &fake{
		server: plugin,
		use:    useKMS(plugin),
		calls:  func() []string { return kmsCalls(plugin) },
		files:  map[string][]byte{encryptionExtension: config},
		rotate: func(drop bool) error {
			plugin.Rotate()
			if drop {
				plugin.DropOldKeys()
			}
			return nil
		},
	}, nil
}

// useKMS returns a function that adds an answer to the table of the call that "when" names,
// or to the tables of all calls if it names none.
func useKMS(plugin *kms.Plugin) func(answer) error {
	distort := func(content json.RawMessage) (reply[kms.StatusRequest, kms.StatusAnswer], error) {
		if err := yaml.UnmarshalStrict(content, &kms.StatusAnswer{}); err != nil {
			return nil, err
		}
		return plugin.DistortStatus(func(is *kms.StatusAnswer) { _ = yaml.Unmarshal(content, is) }), nil
	}
	status := useOf(plugin.Status, func(kms.StatusRequest) any { return kmsCall{Call: "status"} }, distort)
	encrypt := useOf(plugin.Encrypt, func(kms.EncryptRequest) any { return kmsCall{Call: "encrypt"} },
		func(json.RawMessage) (reply[kms.EncryptRequest, kms.EncryptAnswer], error) { return nil, errOnlyStatus })
	decrypt := useOf(plugin.Decrypt, func(r kms.DecryptRequest) any { return kmsCall{Call: "decrypt", KeyID: r.KeyID} },
		func(json.RawMessage) (reply[kms.DecryptRequest, kms.DecryptAnswer], error) { return nil, errOnlyStatus })
	uses := map[any]func(answer) error{"status": status, "encrypt": encrypt, "decrypt": decrypt}
	return func(a answer) error {
		if use, ok := uses[a.When["call"]]; ok {
			return use(a)
		}
		if call, given := a.When["call"]; given {
			return fmt.Errorf("no call is %q; there are status, encrypt and decrypt", call)
		}
		return errors.Join(status(a), encrypt(a), decrypt(a))
	}
}

var errOnlyStatus = errors.New("of a KMS plugin only the call status has an answer of its own, so it needs when: {call: status}")

// kmsCalls tells the calls of all kinds, in the order in which they came.
func kmsCalls(plugin *kms.Plugin) []string {
	told := slices.Concat(
		toldCalls(plugin.Status, func(kms.StatusRequest) string { return "status" },
			func(a kms.StatusAnswer) string { return a.Healthz + ", " + a.KeyID }),
		toldCalls(plugin.Encrypt, func(kms.EncryptRequest) string { return "encrypt" },
			func(a kms.EncryptAnswer) string { return a.KeyID }),
		toldCalls(plugin.Decrypt, func(r kms.DecryptRequest) string { return "decrypt " + r.KeyID },
			func(kms.DecryptAnswer) string { return "done" }),
	)
	slices.SortStableFunc(told, func(a, b toldCall) int { return a.arrived.Compare(b.arrived) })
	return textsOf(told)
}
