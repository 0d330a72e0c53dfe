package sqlitelock

import (
	"context"

	"oncegate/lock"
)

// Check implements lock.Checker. Its name is filesystem. What can't be had at all (a write-ahead log,
// say) fails every call instead, as an ErrUnfit.
func (s *Store) Check(ctx context.Context) ([]lock.Weakness, error) {
	done, err := s.calls.Begin()
	if err != nil {
		return nil, err
	}
	defer done()
	if _, err := s.reading(ctx); err != nil {
		return nil, err
	}
	kind, known := networkFileSystem(s.path)
	switch {
	case !known:
		return []lock.Weakness{{
			Name: "filesystem", Unknown: true,
			Detail: "the kind of the file system that holds " + s.path + " could not be learned; it must be a local one",
		}}, nil
	case kind != "":
		return []lock.Weakness{{
			Name: "filesystem",
			Detail: s.path + " lies on " + kind + ", where locks and syncs may not hold: " +
				"move state_dir to a local disk, or take another store",
		}}, nil
	}
	return nil, nil
}
