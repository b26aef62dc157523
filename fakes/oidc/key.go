package oidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"

	"gopkg.in/go-jose/go-jose.v2"
)

// algorithm is that of all keys: ECDSA on the curve P-256 with SHA-256.
const algorithm = jose.ES256

func newKey(id string) (jose.JSONWebKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return jose.JSONWebKey{}, fmt.Errorf("generate key %s of an OIDC issuer: %w", id, err)
	}
	return jose.JSONWebKey{Key: private, KeyID: id, Algorithm: string(algorithm), Use: "sig"}, nil
}

// sign returns a JSON Web Token (RFC 7519) in its compact form.
func sign(payload []byte, key jose.JSONWebKey) (string, error) {
	with := jose.SigningKey{Algorithm: algorithm, Key: key}
	signer, err := jose.NewSigner(with, new(jose.SignerOptions).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("sign a token with %s: %w", key.KeyID, err)
	}
	token, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("sign a token with %s: %w", key.KeyID, err)
	}
	return token.CompactSerialize()
}
