package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"oncegate/internal/config"
	"oncegate/internal/evidence"
	"oncegate/internal/evidence/sqlevidence"
	"oncegate/lock"
	"oncegate/lock/mysqllock"
)

// redisEvidence bounds the file of evidence that stands beside Redis, in bytes. A
// replica's state folder is often small, and full it has no room for the journal:
// a Kubernetes pod is evicted for it.
const redisEvidence = 512 << 20

// evidenceOf returns where the configuration's evidence is kept; nil where none
// is. A database keeps it beside the claims, in a table of its own; SQLite in a
// file of its own, so that no claim waits for it. Redis, whose memory is too dear
// for it, leaves it to a file in the state folder: what that replica has seen.
func evidenceOf(c *config.Config) (*sqlevidence.Store, error) {
	if c.EvidenceRetention == 0 {
		return nil, nil
	}
	ring, err := keyring(c)
	if err != nil {
		return nil, err
	}
	o := sqlevidence.Options{NoMigrate: c.Store.Migrate == "never", Ring: ring}
	switch {
	case c.Store.Kind == "postgres":
		return sqlevidence.Postgres(c.Store.URL, c.Store.Schema, o)
	case c.Store.Kind == "mysql":
		connector, err := mysqllock.Connector(mysqllock.Options{URL: c.Store.URL})
		if err != nil {
			return nil, err
		}
		return sqlevidence.MySQL(connector, o), nil
	}
	if c.Store.Kind == "redis" {
		o.Most = redisEvidence
	}
	return sqlevidence.SQLite(evidencePath(c), o)
}

// evidenceFor is evidenceOf for a command that only looks, and makes nothing. Nil
// too where nothing was ever kept in SQLite.
func evidenceFor(c *config.Config) (*sqlevidence.Store, error) {
	looking := *c
	looking.Store.Migrate = "never"
	if path := evidencePath(c); path != "" {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, fmt.Errorf("evidence: %w: %w", lock.ErrUnavailable, err)
		}
	}
	return evidenceOf(&looking)
}

// evidencePath is the file of evidence; empty where it lies in a database.
func evidencePath(c *config.Config) string {
	switch c.Store.Kind {
	case "sqlite":
		return strings.TrimSuffix(c.Store.Path, ".db") + "-evidence.db"
	case "redis":
		return filepath.Join(c.StateDir, "evidence.db")
	}
	return ""
}

// openEvidence opens where evidence is kept, and begins to gather it.
func (s *service) openEvidence(c *config.Config) error {
	store, err := evidenceOf(c)
	if err != nil {
		return err
	}
	o := evidence.Options{Namespace: c.Namespace, Retention: c.EvidenceRetention, Log: s.log}
	if store != nil {
		s.evidence, o.Store = store, store
	}
	s.recorder = evidence.NewRecorder(o)
	return nil
}

// closeEvidence writes what is left, as far as there is time, and closes it.
func (s *service) closeEvidence() error {
	ctx, cancel := shortly(lastEvidence)
	defer cancel()
	s.recorder.Close(ctx)
	if s.evidence == nil {
		return nil
	}
	return s.evidence.Close()
}
