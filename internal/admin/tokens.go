package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Token lets its holder ask, and decide where it is not read-only.
type Token struct {
	// Name says who the holder is.
	Name     string
	Secret   string
	ReadOnly bool
}

// whose returns the token with this secret. It compares with all of them, each
// in constant time, by digests of one length.
func whose(tokens []Token, secret string) (who Token, ok bool) {
	given := sha256.Sum256([]byte(secret))
	for _, t := range tokens {
		own := sha256.Sum256([]byte(t.Secret))
		if subtle.ConstantTimeCompare(given[:], own[:]) == 1 && t.Secret != "" {
			who, ok = t, true
		}
	}
	return who, ok
}

// TokenFile is the name of the file in the state folder that holds its token.
const TokenFile = "admin.token"

// ReadToken returns the token of a state folder.
func ReadToken(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, TokenFile))
	if err != nil {
		return "", fmt.Errorf("operators' token: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < 20 {
		return "", fmt.Errorf("operators' token: %s holds none; remove it, and serve makes another", filepath.Join(dir, TokenFile))
	}
	return secret, nil
}

// OwnToken returns the token of a state folder, and makes it where there is
// none, readable by its owner alone. Of several processes one does.
func OwnToken(dir string) (string, error) {
	secret, err := ReadToken(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	var raw [32]byte
	rand.Read(raw[:])
	f, err := os.CreateTemp(dir, TokenFile+".*")
	if err != nil {
		return "", fmt.Errorf("operators' token: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(raw[:]) + "\n") // CreateTemp's files are their owner's alone
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		// A link, unlike a rename, leaves another's alone.
		if err = os.Link(f.Name(), filepath.Join(dir, TokenFile)); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err := errors.Join(err, os.Remove(f.Name())); err != nil {
		return "", fmt.Errorf("operators' token: %w", err)
	}
	return ReadToken(dir)
}
