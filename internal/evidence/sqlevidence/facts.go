package sqlevidence

import (
	"encoding/json"
	"fmt"

	"oncegate/internal/evidence"
	"oncegate/lock"
)

// seal returns an entry's facts as they are stored: JSON, or with a key a blob
// that holds it.
func (s *Store) seal(e *evidence.Entry) ([]byte, error) {
	facts, err := json.Marshal(&e.Facts)
	if err == nil && s.options.Ring != nil {
		facts, err = s.options.Ring.SealFacts(lock.Seal(facts), &e.Key, e.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	return facts, nil
}

// unseal reads an entry's facts. Those that can't be read, since their key is not
// there or they were damaged, are said to be sealed: the rest of the entry is
// worth much without them.
func (s *Store) unseal(e *evidence.Entry, stored []byte) {
	text := stored
	if len(stored) == 0 || stored[0] != '{' {
		if s.options.Ring != nil {
			stored = s.options.Ring.OpenFacts(stored, &e.Key, e.ID)
		}
		var err error
		if text, err = lock.Unseal(stored); err != nil {
			e.Facts = evidence.Facts{Sealed: true}
			return
		}
	}
	if err := json.Unmarshal(text, &e.Facts); err != nil {
		e.Facts = evidence.Facts{Sealed: true}
	}
}
