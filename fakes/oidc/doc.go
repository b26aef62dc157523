// Package oidc holds a fake OpenID Connect issuer, for an API server that authenticates
// users by ID tokens: the two documents by which it verifies tokens, served from a
// listener as a test decides, and the tokens themselves, good ones and bad ones. The
// keys are ECDSA P-256, their signatures ES256.
//
// It knows no users and no passwords, and has none of the endpoints by which people log
// in: a test asks it for tokens directly.
package oidc
