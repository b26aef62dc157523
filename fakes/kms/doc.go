// Package kms holds a fake KMS v2 plugin, for an API server that encrypts what it
// stores: Status, Encrypt and Decrypt over gRPC, with keys that rotate, a health to
// choose, and answers that a test chooses call by call. The encryption is real, AES-GCM
// with keys that are nowhere but in memory.
//
// It knows nothing of version 1 of the API, and keeps no plaintext unless asked.
package kms
