// Package encoding says how values in the store are encoded. It never decrypts one.
package encoding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What values in the store begin with, by upstream's encodings.
var (
	protobufPrefix  = []byte("k8s\x00")
	encryptedPrefix = []byte("k8s:enc:")
)

// Of says how a value is encoded, and what it is.
func Of(value []byte) string {
	var kind metav1.TypeMeta
	switch {
	case bytes.HasPrefix(value, encryptedPrefix):
		// k8s:enc:PROVIDER:VERSION:KEY: and then what only the key can read
		parts := strings.SplitN(string(value), ":", 6)
		return strings.TrimSpace("encrypted " + strings.Join(parts[2:min(len(parts), 5)], " "))
	case bytes.HasPrefix(value, protobufPrefix):
		var unknown runtime.Unknown
		if err := unknown.Unmarshal(value[len(protobufPrefix):]); err == nil {
			return fmt.Sprintf("protobuf %s %s", unknown.APIVersion, unknown.Kind)
		}
	case json.Unmarshal(value, &kind) == nil && kind.Kind != "":
		return fmt.Sprintf("json %s %s", kind.APIVersion, kind.Kind)
	}
	return fmt.Sprintf("%d bytes", len(value))
}
