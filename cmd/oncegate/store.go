package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"oncegate/internal/atrest"
	"oncegate/internal/config"
	"oncegate/internal/openstore"
	"oncegate/lock"
	"oncegate/lock/mysqllock"
	"oncegate/lock/pglock"
	"oncegate/lock/redislock"
	"oncegate/lock/sqlitelock"
)

// A backend is a store as the commands use it.
type backend interface {
	openstore.Backend
	// Migrate makes or changes the tables that the store needs.
	Migrate(ctx context.Context) error
}

// backendOf returns the store that the configuration names. It connects to
// nothing yet. This is the one place where a kind of store becomes a driver.
func backendOf(s config.Store) (backend, error) {
	switch s.Kind {
	case "sqlite":
		return sqliteBackend{sqlitelock.Open(s.Path, sqlitelock.Options{
			NoMigrate: s.Migrate == "never", Readers: s.Pool,
		}), s.Path}, nil
	case "postgres":
		return pglock.Open(pglock.Options{
			URL: s.URL, Schema: s.Schema, Pool: s.Pool, Mode: pgMode(s.ExecMode), NoMigrate: s.Migrate == "never",
		})
	case "mysql":
		return mysqllock.Open(mysqllock.Options{URL: s.URL, Pool: s.Pool, NoMigrate: s.Migrate == "never"})
	case "redis":
		store, err := redislock.Open(redislock.Options{URL: s.URL, Pool: s.Pool, Replicas: s.Replicas})
		return redisBackend{store}, err
	}
	return nil, fmt.Errorf("store %s: stores of kind %s are not available in this version", s, s.Kind)
}

// openBackend returns the configuration's store, with what is encrypted in it.
func openBackend(c *config.Config) (backend, error) {
	ring, err := keyring(c)
	if err != nil {
		return nil, err
	}
	b, err := backendOf(c.Store)
	if err != nil || ring == nil {
		return b, err
	}
	return atrest.Wrap(b, ring), nil
}

// keyring holds the keys that the configuration names; nil where it names none.
func keyring(c *config.Config) (*atrest.Keyring, error) {
	if len(c.EncryptionKeys) == 0 {
		return nil, nil
	}
	keys := make([]atrest.Key, len(c.EncryptionKeys))
	for i, k := range c.EncryptionKeys {
		keys[i] = atrest.Key{ID: k.ID, Secret: k.Key}
	}
	return atrest.NewKeyring(keys)
}

// pgMode is what the configuration's word means to the driver, which knows three
// ways: find out by itself, always prepare statements, never.
func pgMode(word string) pglock.Mode {
	switch word {
	case "":
		return pglock.ModeAuto
	case "cache_statement":
		return pglock.ModePrepare
	}
	return pglock.ModeExec
}

// A redisBackend has no tables to make.
type redisBackend struct{ *redislock.Store }

// Migrate sees that the server answers.
func (b redisBackend) Migrate(ctx context.Context) error {
	_, err := b.Check(ctx)
	return err
}

// A sqliteBackend also makes the folder that holds the file, which may be a disk
// that is not there yet.
type sqliteBackend struct {
	*sqlitelock.Store
	path string
}

// Check makes the folder first.
func (b sqliteBackend) Check(ctx context.Context) ([]lock.Weakness, error) {
	if err := b.makeFolder(); err != nil {
		return nil, err
	}
	return b.Store.Check(ctx)
}

// Migrate makes the folder first.
func (b sqliteBackend) Migrate(ctx context.Context) error {
	if err := b.makeFolder(); err != nil {
		return err
	}
	return b.Store.Migrate(ctx)
}

func (b sqliteBackend) makeFolder() error {
	if err := os.MkdirAll(filepath.Dir(b.path), 0o700); err != nil {
		return fmt.Errorf("%w: its folder can't be made: %w", lock.ErrUnavailable, err)
	}
	return nil
}

// seenFile says what to do where SQLite's file is not there, or in a folder of
// another user's.
func seenFile(path string) error {
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; serve makes the file when it first runs, in the folder that state_dir names", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; run this as root or as the user that serve runs as, or ask the running oncegate, with --admin http://127.0.0.1:9181", err)
	}
	return err
}

// withStore opens the configuration's store for a command that only looks, and
// closes it. Such a command makes no store and changes no tables: oncegate may be
// running, in another version.
func withStore(ctx context.Context, c *config.Config, do func(context.Context, backend) error) (err error) {
	if c.Store.Kind == "sqlite" {
		if err := seenFile(c.Store.Path); err != nil {
			return fmt.Errorf("%w: %w", lock.ErrUnavailable, err)
		}
	}
	looking := *c
	looking.Store.Migrate = "never"
	store, err := openBackend(&looking)
	if err != nil {
		return err
	}
	defer func() {
		if closing := store.Close(); err == nil {
			err = closing
		}
	}()
	return do(ctx, store)
}
