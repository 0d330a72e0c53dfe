// Package atrest encrypts what a store keeps of requests and answers, and what
// evidence says.
//
//	ring, err := atrest.NewKeyring([]atrest.Key{{ID: "k2", Secret: k2}, {ID: "k1", Secret: k1}})
//	store := atrest.Wrap(backend, ring)
//
// The first key encrypts; all of them decrypt, so that a new one can be put in
// front and the old ones be left for as long as what they encrypted is kept.
//
// # A blob
//
// Package lock seals a blob with a format byte and the length and text of a key
// id, which it leaves empty. Here the id is filled in, and what follows becomes
//
//	salt (16 random bytes), AES-256-GCM of the content
//
// under a key derived (HKDF-SHA256) from the named one and the salt. So each
// blob has a key of its own, and no count of blobs wears a key out. Namespace,
// scope, digest and column, and of evidence the entry's ID, are authenticated with
// it: a blob that is moved to another claim, column or entry can't be read.
//
// # What is not encrypted
//
// Event keys and tags of claims, which one searches by; of evidence the columns
// that one selects and counts by; and what was stored before there was a key,
// which stays readable. A blob whose key is missing stays as it is, and
// lock.Unseal says lock.ErrSealed.
package atrest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"oncegate/lock"
)

// A Key is one of a ring.
type Key struct {
	ID     string // 1 to 255 bytes; it never changes
	Secret [32]byte
}

// A Keyring encrypts under its first key and decrypts under all. It does not
// change.
type Keyring struct {
	first   string
	secrets map[string][]byte
}

// NewKeyring returns a ring of at least one key.
func NewKeyring(keys []Key) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("atrest: no key")
	}
	r := &Keyring{first: keys[0].ID, secrets: map[string][]byte{}}
	for _, k := range keys {
		if k.ID == "" || len(k.ID) > 255 || r.secrets[k.ID] != nil {
			return nil, errors.New("atrest: an id is empty, too long, or given twice")
		}
		r.secrets[k.ID] = k.Secret[:]
	}
	return r, nil
}

const (
	format   = 1 // of package lock's blobs
	saltSize = 16
)

// A column is the part of a record that a blob is.
type column byte

const (
	answerHeader column = 'h'
	answerBody   column = 'b'
	request      column = 'r'
	facts        column = 'e'
)

// about is what is authenticated with a blob. Namespace and scope hold no NUL.
func about(k *lock.Key, c column) []byte {
	b := append([]byte(k.Namespace), 0)
	b = append(append(b, k.Scope...), 0, byte(c))
	return append(b, k.Digest[:]...)
}

// SealFacts encrypts what an entry of evidence says, which package lock has
// sealed. Key is the entry's, id its own.
func (r *Keyring) SealFacts(blob []byte, key *lock.Key, id [16]byte) ([]byte, error) {
	return r.seal(blob, append(about(key, facts), id[:]...))
}

// OpenFacts decrypts it. What is not encrypted, or not readable, stays as it is.
func (r *Keyring) OpenFacts(blob []byte, key *lock.Key, id [16]byte) []byte {
	return r.open(blob, append(about(key, facts), id[:]...))
}

// seal encrypts a blob that package lock has sealed. Others, and those that are
// encrypted already, stay as they are.
func (r *Keyring) seal(blob, about []byte) ([]byte, error) {
	if len(blob) < 2 || blob[0] != format || blob[1] != 0 {
		return blob, nil
	}
	head := append([]byte{format, byte(len(r.first))}, r.first...)
	out := make([]byte, len(head)+saltSize, len(head)+saltSize+len(blob)+16)
	copy(out, head)
	salt := out[len(head):]
	rand.Read(salt)
	aead, err := derived(r.secrets[r.first], salt)
	if err != nil {
		return nil, err
	}
	return aead.Seal(out, make([]byte, aead.NonceSize()), blob[2:], about), nil
}

// open decrypts a blob. One that is not encrypted, or not readable, stays as it
// is.
func (r *Keyring) open(blob, about []byte) []byte {
	if len(blob) < 2 || blob[0] != format || blob[1] == 0 {
		return blob
	}
	rest := blob[2:]
	n := int(blob[1])
	if len(rest) < n+saltSize {
		return blob
	}
	secret := r.secrets[string(rest[:n])]
	if secret == nil {
		return blob
	}
	aead, err := derived(secret, rest[n:n+saltSize])
	if err != nil {
		return blob
	}
	content, err := aead.Open([]byte{format, 0}, make([]byte, aead.NonceSize()), rest[n+saltSize:], about)
	if err != nil {
		return blob
	}
	return content
}

// derived returns the cipher of one blob. Its nonce may be fixed, since no two
// blobs have one salt.
func derived(secret, salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, secret, salt, "oncegate blob 1", 32)
	if err != nil {
		return nil, fmt.Errorf("atrest: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("atrest: %w", err)
	}
	return cipher.NewGCM(block)
}
