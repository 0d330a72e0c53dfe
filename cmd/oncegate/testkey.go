package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"oncegate/provider"
	"oncegate/verify"
)

// makeTestKey writes a private key that suits the provider into a new file, and
// says how a route comes to trust it.
func (p *program) makeTestKey(flags *sendFlags) error {
	preset, err := p.presetOf(flags)
	if err != nil {
		return err
	}
	file := flags.makeKey
	key, err := verify.NewTestKey(preset.Verify)
	if errors.Is(err, verify.ErrCannotSign) {
		return fmt.Errorf("%s signs with a secret that both sides know; no key is needed: %w", preset.Title, err)
	}
	if err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.WriteString(key)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	field := "secrets"
	if _, fetched := verify.WithTestKey(preset.Verify, key); fetched {
		field = "test_key"
	}
	_, err = fmt.Fprintf(p.stdout, "a private key for tests is in %s\n\na test route trusts it by\n\n    %s: file:%s\n\nand refuses %s's own deliveries then, so never leave it on a route that %s calls\n",
		file, field, file, preset.Title, preset.Title)
	return err
}

// presetOf is the preset that the flags name, or that the route has.
func (p *program) presetOf(flags *sendFlags) (*provider.Preset, error) {
	if flags.provider != "" {
		return provider.Get(flags.provider)
	}
	_, route, err := p.sendRoute(flags, nil)
	if err != nil {
		return nil, err
	}
	if route.Preset == nil {
		return nil, fmt.Errorf("route %s has no preset: make a key that suits its scheme with openssl", route.Name)
	}
	return route.Preset, nil
}

// signWith lets a sampler sign with the private key in a file.
func (p *program) signWith(s *sampler, file string) error {
	key, err := p.readFile(file)
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	signer, err := s.route.Verifier.Signing(string(key))
	if err != nil {
		return fmt.Errorf("--key: the key in %s doesn't suit route %s: %w", printable(file), s.route.Name, err)
	}
	s.signer = signer
	return nil
}
