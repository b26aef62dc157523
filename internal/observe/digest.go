package observe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
)

// random is what differs from run to run by its nature, and is compared by what it is:
// UIDs, and certificates and keys, in plain text or in base64.
var random = []struct {
	text *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "uid"},
	{regexp.MustCompile(`-----BEGIN ([A-Z ]+)-----.+?-----END [A-Z ]+-----`), "PEM $1"},
	{regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/]+=*`), "PEM"},
}

// digest is equal for equal content in any encoding, but for what is random.
func digest(content map[string]any) string {
	rest := map[string]any{}
	for k, v := range content {
		if k != "kind" && k != "apiVersion" { // protobuf does not always tell them
			rest[k] = v
		}
	}
	if metadata, ok := rest["metadata"].(map[string]any); ok {
		slim := map[string]any{}
		for k, v := range metadata {
			if k != "resourceVersion" {
				slim[k] = v
			}
		}
		rest["metadata"] = slim
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return ""
	}
	for _, r := range random {
		text = r.text.ReplaceAll(text, []byte(r.is))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}
