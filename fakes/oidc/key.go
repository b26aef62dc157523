package oidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// algorithm is that of all keys: ECDSA on the curve P-256 with SHA-256.
const algorithm = "ES256"

// coordinateBytes is the length of a coordinate, and of half a signature.
const coordinateBytes = 32

// encode is the encoding of all binary parts of a token and of a key.
var encode = base64.RawURLEncoding.EncodeToString

// signingKey is a private key and its id.
type signingKey struct {
	id      string
	private *ecdsa.PrivateKey
	x, y    []byte // of the public key
}

// webKey is a public key as RFC 7517 has it.
type webKey struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Curve     string `json:"crv"`
	Algorithm string `json:"alg"`
	X         string `json:"x"`
	Y         string `json:"y"`
}

func newKey(id string) (signingKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return signingKey{}, fmt.Errorf("generate key %s of an OIDC issuer: %w", id, err)
	}
	point, err := private.PublicKey.Bytes() // uncompressed: a byte that says so, then the coordinates
	if err != nil {
		return signingKey{}, fmt.Errorf("encode key %s of an OIDC issuer: %w", id, err)
	}
	return signingKey{id: id, private: private, x: point[1 : 1+coordinateBytes], y: point[1+coordinateBytes:]}, nil
}

func (k signingKey) public() webKey {
	return webKey{
		Use: "sig", Type: "EC", ID: k.id, Curve: "P-256", Algorithm: algorithm,
		X: encode(k.x), Y: encode(k.y),
	}
}

// sign returns a JSON Web Token (RFC 7519) in its compact form.
func (k signingKey) sign(payload []byte) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": algorithm, "kid": k.id, "typ": "JWT"})
	if err != nil {
		return "", fmt.Errorf("encode the header of a token: %w", err)
	}
	token := encode(header) + "." + encode(payload)
	digest := sha256.Sum256([]byte(token))
	r, s, err := ecdsa.Sign(rand.Reader, k.private, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign a token with %s: %w", k.id, err)
	}
	signature := make([]byte, 2*coordinateBytes)
	r.FillBytes(signature[:coordinateBytes])
	s.FillBytes(signature[coordinateBytes:])
	return token + "." + encode(signature), nil
}
