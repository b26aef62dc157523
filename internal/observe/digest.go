package observe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
)

// random matches what differs from run to run by its nature: UIDs, and certificates and
// keys, in plain text or in base64. For the digest, is takes the place of the match.
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
	rest := maps.Clone(content)
	delete(rest, "kind") // protobuf does not always tell it, nor the apiVersion
	delete(rest, "apiVersion")
	if metadata, ok := rest["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		rest["metadata"] = metadata
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
