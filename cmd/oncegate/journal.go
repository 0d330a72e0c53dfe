package main

import (
	"fmt"
	"os"

	"oncegate/internal/config"
	"oncegate/lock"
)

// openJournal opens the settle journal in the state folder. Where that can't be
// had, traffic passes all the same: what is owed is then kept in memory only,
// and that is said.
func (s *service) openJournal(c *config.Config) {
	journal, err := journalFor(c)
	if err != nil {
		s.log.Error("there is no settle journal: what the store does not take in time is lost if this process ends before it does; put state_dir right and start anew",
			"state_dir", c.StateDir, "error", err)
		return
	}
	s.journal = journal
	found := journal.Found
	if found.Owed > 0 {
		s.log.Info("the settle journal holds what an earlier process owed the store", "writes", found.Owed)
	}
	if found.Damaged > 0 {
		s.log.Error("records of the settle journal could not be read; the claims they settle will be found lapsed", "records", found.Damaged)
	}
	if found.Torn > 0 {
		s.log.Warn("a write to the settle journal had been broken off", "bytes", found.Torn)
	}
}

func journalFor(c *config.Config) (*lock.Journal, error) {
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	ring, err := keyring(c)
	switch {
	case err != nil:
		return nil, err
	case ring == nil:
		return lock.OpenJournal(c.StateDir, 0)
	}
	return lock.OpenSealedJournal(c.StateDir, 0, ring.SealRecord)
}

// closeJournal closes it, if there is one.
func (s *service) closeJournal() error {
	if s.journal == nil {
		return nil
	}
	return s.journal.Close()
}
