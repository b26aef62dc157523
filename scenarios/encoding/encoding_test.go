package encoding

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOf(t *testing.T) {
	for value, want := range map[string]string{
		`{"apiVersion":"v1","kind":"Pod"}`:       "json v1 Pod",
		"k8s\x00\n\t\n\x02v1\x12\x03Pod":         "protobuf v1 Pod",
		"k8s:enc:aescbc:v1:key:\x00secret: more": "encrypted aescbc v1 key",
		"k8s:enc:":                               "encrypted",
		"k8s\x00\xff":                            "5 bytes",
		`{"kind":""}`:                            "11 bytes",
		"":                                       "0 bytes",
	} {
		assert.Equal(t, want, Of([]byte(value)), "%q", value)
	}
}
