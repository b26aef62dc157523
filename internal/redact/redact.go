// Package redact owns what no other person may read in what is shared: it takes live
// credentials out of texts, such as those of traces, reports and logs. In the place of
// each is a short hash of it, so that two can be told apart and a text stays the same.
package redact

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
)

// TokenPrefix begins the bearer tokens that envtest makes, by which they are found.
const TokenPrefix = "snowglobe-token-"

// secret is a kind of credential.
type secret struct {
	mark string         // is in every text that has one; cheaper to look for
	text *regexp.Regexp // the first group is the credential, or all if there is none
	is   func(found string) string
}

var secrets = []secret{
	{TokenPrefix, regexp.MustCompile(TokenPrefix + `[A-Z2-7]+`), always("token")},
	{"eyJ", regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), always("token")}, // a JWT
	{"earer ", regexp.MustCompile(`\b[Bb]earer ([A-Za-z0-9._~+/-]{8,}=*)`), always("token")},
	{"PRIVATE KEY", regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----`), always("private key")},
	{"LS0tLS1CRUdJTi", regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/]+=*`), privateKey}, // PEM in base64, as in a kubeconfig
}

func always(kind string) func(string) string { return func(string) string { return kind } }

// privateKey tells keys from certificates, which are no secret.
func privateKey(found string) string {
	text, _ := base64.StdEncoding.DecodeString(found)
	if strings.Contains(string(text), "PRIVATE KEY") {
		return "private key"
	}
	return ""
}

// Text returns the text without credentials: "[token 0f5c1a2b]" is where one was.
func Text(text string) string {
	for _, s := range secrets {
		if !strings.Contains(text, s.mark) {
			continue
		}
		text = s.text.ReplaceAllStringFunc(text, func(match string) string {
			found := s.text.FindStringSubmatch(match)
			credential := found[len(found)-1]
			if kind := s.is(credential); kind != "" {
				return strings.Replace(match, credential, hashed(kind, credential), 1)
			}
			return match
		})
	}
	return text
}

// hashed is too short to find the credential by, and long enough to tell two apart.
func hashed(kind, credential string) string {
	sum := sha256.Sum256([]byte(credential))
	return fmt.Sprintf("[%s %x]", kind, sum[:4])
}

// Error returns the error with a text without credentials. It wraps err if they differ.
func Error(err error) error {
	if err == nil {
		return nil
	}
	before := err.Error()
	if text := Text(before); text != before {
		return &redacted{text, err}
	}
	return err
}

type redacted struct {
	text string
	err  error
}

// Error implements error.
func (r *redacted) Error() string { return r.text }

// Unwrap returns the error whose text has credentials.
func (r *redacted) Unwrap() error { return r.err }
