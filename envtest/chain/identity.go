package chain

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
)

// serverID is the identity that upstream derives for an API server on a host.
func serverID(host string) string {
	var text []byte
	for _, part := range []string{host, "kube-apiserver"} {
		text = binary.BigEndian.AppendUint16(text, uint16(len(part)))
		text = append(text, part...)
	}
	hash := sha256.Sum256(text)
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:16]))
}
