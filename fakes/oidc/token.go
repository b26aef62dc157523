package oidc

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"gopkg.in/go-jose/go-jose.v2"
)

// Token is what an ID token says, and who signs it.
type Token struct {
	Subject  string
	Audience []string // such as the API server's client id
	// Lifetime is how long the token is valid. 0 means an hour, less that it has expired.
	Lifetime time.Duration
	// Claims are further claims, such as groups. They replace those that the issuer
	// makes, iss, sub, aud, iat and exp; a claim that is nil is left out.
	Claims map[string]any
	Key    Key
}

// Key is what a token is signed with.
type Key int

const (
	// CurrentKey is the newest, which is published.
	CurrentKey Key = iota
	// PreviousKey is the one before the last rotation. It is published or not.
	PreviousKey
	// UnknownKey is one that was never published, and whose id is unknown.
	UnknownKey
	// ForgedKey is another than the current one that bears its id.
	ForgedKey
	// NoKey is no signature at all: algorithm none.
	NoKey
)

// Rotate makes a new key, with which tokens are signed from now on. The old ones stay
// published, so that their tokens stay valid, until DropOldKeys. The keys are named
// key-1, key-2 and so on.
func (i *Issuer) Rotate() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	key, err := newKey(fmt.Sprintf("key-%d", i.made+1))
	if err != nil {
		return err
	}
	i.made++
	i.keys = append([]jose.JSONWebKey{key}, i.keys...)
	i.published++
	return nil
}

// DropOldKeys publishes the current key alone. An API server notices when it asks for
// the keys again, which it does for a token whose key it does not know.
func (i *Issuer) DropOldKeys() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.published = 1
}

// Issue returns a token in its compact form, as it follows "Authorization: Bearer". It
// fails if claims can't be encoded, or if the key was never made.
func (i *Issuer) Issue(token Token) (string, error) {
	payload, err := json.Marshal(i.claims(token))
	if err != nil {
		return "", fmt.Errorf("encode the claims of a token: %w", err)
	}
	if token.Key == NoKey {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + encode(payload) + ".", nil
	}
	key, err := i.key(token.Key)
	if err != nil {
		return "", err
	}
	return sign(payload, key)
}

// claims are those of a token. The audience is a string if there is one alone, as most
// issuers have it.
func (i *Issuer) claims(token Token) map[string]any {
	token.Lifetime = cmp.Or(token.Lifetime, time.Hour)
	now := time.Now()
	issued := now
	if token.Lifetime < 0 {
		issued = now.Add(token.Lifetime - time.Hour)
	}
	claims := map[string]any{
		"iss": i.URL(),
		"sub": token.Subject,
		"iat": issued.Unix(),
		"exp": now.Add(token.Lifetime).Unix(),
	}
	switch len(token.Audience) {
	case 0:
	case 1:
		claims["aud"] = token.Audience[0]
	default:
		claims["aud"] = token.Audience
	}
	maps.Copy(claims, token.Claims)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

func (i *Issuer) key(which Key) (jose.JSONWebKey, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch which {
	case CurrentKey:
		return i.keys[0], nil
	case PreviousKey:
		if len(i.keys) < 2 {
			return jose.JSONWebKey{}, errors.New("sign a token with the previous key: there is none before Rotate")
		}
		return i.keys[1], nil
	case UnknownKey:
		return newKey("unknown")
	case ForgedKey:
		return newKey(i.keys[0].KeyID)
	default:
		return jose.JSONWebKey{}, fmt.Errorf("sign a token with key %d: there is no such kind of key", which)
	}
}
