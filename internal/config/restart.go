package config

import "slices"

// NeedsRestart returns the fields in which next differs from c and which a
// running process can't change: its listeners, its folder, its store and how that
// is asked, and what claims are kept under. A reload that would change one of them must change
// nothing, and say which.
func (c *Config) NeedsRestart(next *Config) (fields []string) {
	note := func(field string, same bool) {
		if !same {
			fields = append(fields, field)
		}
	}
	note("listen", c.Listen == next.Listen)
	note("health", c.Health == next.Health)
	note("admin", c.Admin == next.Admin)
	note("state_dir", c.StateDir == next.StateDir)
	note("store", c.Store.equal(next.Store))
	note("store_timeout", c.StoreTimeout == next.StoreTimeout)
	note("namespace", c.Namespace == next.Namespace)
	note("encryption_keys", slices.Equal(c.EncryptionKeys, next.EncryptionKeys))
	note("evidence_retention", c.EvidenceRetention == next.EvidenceRetention)
	return fields
}

func (s Store) equal(other Store) bool {
	weak := slices.Equal(s.AcceptWeak, other.AcceptWeak)
	return weak && s.Kind == other.Kind && s.URL == other.URL && s.Path == other.Path && s.Pool == other.Pool && s.Schema == other.Schema &&
		s.ExecMode == other.ExecMode && s.Migrate == other.Migrate && s.Replicas == other.Replicas
}
