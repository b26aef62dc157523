package kms

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nonceAnnotation holds the nonce of a ciphertext, so that nothing can be decrypted
// without the annotations that came with it.
const nonceAnnotation = "nonce.kms.snowglobe.test"

const keyBytes = 32

// key is one that encrypts other keys.
type key struct {
	id     string
	secret []byte
}

func (k key) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Rotate makes a new key, which encrypts from now on, and returns its id: key-1 is the
// first. The old ones still decrypt, until DropOldKeys. An API server sees the new id
// when it next asks for the status.
func (p *Plugin) Rotate() (id string) {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // never fails
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	id = fmt.Sprintf("key-%d", p.made)
	p.keys = append([]key{{id, secret}}, p.keys...)
	return id
}

// DropOldKeys makes all but the current key unknown. What they encrypted is lost.
func (p *Plugin) DropOldKeys() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = slices.Clone(p.keys[:1])
}

// SetHealthz says how the plugin is: ok, or what is wrong. It encrypts all the same.
func (p *Plugin) SetHealthz(healthz string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healthz = healthz
}

// DistortEncrypt is the Answer of a rule that encrypts as the plugin does by itself, and
// then changes the answer, such as its key id.
func (p *Plugin) DistortEncrypt(how func(*EncryptAnswer)) func(context.Context, EncryptRequest) (EncryptAnswer, error) {
	return func(ctx context.Context, request EncryptRequest) (EncryptAnswer, error) {
		answer, err := p.encrypt(ctx, request)
		if err == nil {
			how(&answer)
		}
		return answer, err
	}
}

// DistortStatus is the Answer of a rule that tells how the plugin is, changed.
func (p *Plugin) DistortStatus(how func(*StatusAnswer)) func(context.Context, StatusRequest) (StatusAnswer, error) {
	return func(context.Context, StatusRequest) (StatusAnswer, error) {
		answer := p.status()
		how(&answer)
		return answer, nil
	}
}

func (p *Plugin) status() StatusAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return StatusAnswer{Version: "v2", Healthz: p.healthz, KeyID: p.keys[0].id}
}

// plaintextKey is that of the *[]byte in a call's context which the plaintext is in, or
// comes into: the requests and the answers are recorded, and must not have it.
type plaintextKey struct{}

func plaintextOf(ctx context.Context) *[]byte {
	return ctx.Value(plaintextKey{}).(*[]byte)
}

func (p *Plugin) encrypt(ctx context.Context, _ EncryptRequest) (none EncryptAnswer, err error) {
	p.mu.Lock()
	current := p.keys[0]
	p.mu.Unlock()
	aead, err := current.aead()
	if err != nil {
		return none, fmt.Errorf("encrypt with %s: %w", current.id, err)
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return EncryptAnswer{
		Ciphertext:  aead.Seal(nil, nonce, *plaintextOf(ctx), []byte(current.id)),
		KeyID:       current.id,
		Annotations: map[string][]byte{nonceAnnotation: nonce},
	}, nil
}

func (p *Plugin) decrypt(ctx context.Context, request DecryptRequest) (none DecryptAnswer, err error) {
	p.mu.Lock()
	keys := p.keys
	p.mu.Unlock()
	i := slices.IndexFunc(keys, func(k key) bool { return k.id == request.KeyID })
	if i < 0 {
		return none, status.Errorf(codes.NotFound, "there is no key %q", request.KeyID)
	}
	found := keys[i]
	aead, err := found.aead()
	if err != nil {
		return none, fmt.Errorf("decrypt with %s: %w", found.id, err)
	}
	nonce := request.Annotations[nonceAnnotation]
	if len(nonce) != aead.NonceSize() {
		return none, status.Errorf(codes.InvalidArgument, "the annotation %s is not what came out of Encrypt", nonceAnnotation)
	}
	plaintext, err := aead.Open(nil, nonce, request.Ciphertext, []byte(found.id))
	if err != nil {
		return none, status.Errorf(codes.InvalidArgument, "decrypt with %s: %v", found.id, err)
	}
	*plaintextOf(ctx) = plaintext
	answer := DecryptAnswer{Bytes: len(plaintext)}
	if p.config.RecordPlaintexts {
		answer.Plaintext = plaintext
	}
	return answer, nil
}
