package redact_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/pki"
	"snowglobe.test/internal/redact"
)

func TestText(t *testing.T) {
	authority, err := pki.NewAuthority("a")
	require.NoError(t, err)
	pair, err := authority.Client("admin")
	require.NoError(t, err)
	encode := base64.StdEncoding.EncodeToString
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyb2JvdCJ9.c2lnbmF0dXJl"
	for name, credential := range map[string]string{
		"a service account's token": jwt,
		"an unsigned token":         "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb2JvdCJ9.",
		"a user's token":            redact.TokenPrefix + "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
		"a key":                     strings.TrimSpace(string(pair.Key)),
		"a key in a kubeconfig":     encode(pair.Key),
	} {
		text := fmt.Sprintf("before %s after", credential)
		got := redact.Text(text)
		assert.NotContains(t, got, credential, name)
		assert.Regexp(t, `^before \[(token|private key) [0-9a-f]{8}\] after$`, got, name)
		assert.Equal(t, got, redact.Text(text), name)
		assert.Equal(t, got, redact.Text(got), "%s: what is redacted stays", name)
	}
	assert.Regexp(t, `^Authorization: Bearer \[token [0-9a-f]{8}\]$`, redact.Text("Authorization: Bearer 0123456789abcdef"))
	assert.NotEqual(t, redact.Text(jwt), redact.Text(jwt+"x"), "two can be told apart")
	for _, public := range []string{
		string(pair.Cert), encode(pair.Cert), "as token $TOKEN", "a bearer of news", "?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "",
	} {
		assert.Equal(t, public, redact.Text(public))
	}
}

func TestError(t *testing.T) {
	assert.NoError(t, redact.Error(nil))
	assert.Equal(t, io.EOF, redact.Error(io.EOF))
	err := redact.Error(fmt.Errorf("token %sABC: %w", redact.TokenPrefix, io.EOF))
	assert.True(t, errors.Is(err, io.EOF))
	assert.NotContains(t, err.Error(), "ABC")
}
