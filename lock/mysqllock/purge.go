package mysqllock

import (
	"context"
	"database/sql"

	"oncegate/lock"
)

// Purge implements lock.Catalog. It looks for what is past its retention without
// locking anything, by the index that is there for it, and then removes that by
// its keys: a DELETE that looks for itself reads and locks the whole table where
// much of it is to go, and all who claim wait for it.
func (s *Store) Purge(ctx context.Context, namespace string, limit int) (p lock.Purged, err error) {
	var keys []lock.Key
	err = s.write(ctx, "purge", func() (err error) {
		keys, err = s.over(ctx, namespace, limit)
		return err
	})
	if err != nil || len(keys) == 0 {
		return p, err
	}
	err = s.write(ctx, "purge", func() (err error) {
		p.Removed, err = s.remove(ctx, keys)
		return err
	})
	p.More = len(keys) == limit
	return p, err
}

// over returns the keys of up to limit records past their retention.
func (s *Store) over(ctx context.Context, namespace string, limit int) (keys []lock.Key, err error) {
	q := &query{}
	q.add(`SELECT scope, digest FROM oncegate_claims FORCE INDEX (claims_expiry)
		WHERE namespace = ? AND expires_at <= `+now+` ORDER BY expires_at LIMIT ?`, []byte(namespace), limit)
	err = s.query(ctx, q, func(rows *sql.Rows) error {
		k := lock.Key{Namespace: namespace}
		var digest []byte
		err := rows.Scan(&k.Scope, &digest)
		copy(k.Digest[:], digest)
		keys = append(keys, k)
		return err
	})
	return keys, err
}

// remove removes those records that still are past their retention. Where others
// are at work on the same rows it tries again, as this can be left to any time.
func (s *Store) remove(ctx context.Context, keys []lock.Key) (int, error) {
	where, args := whereKeys(keys)
	for try := 0; ; try++ {
		result, err := s.db.ExecContext(ctx, `DELETE c FROM oncegate_claims c FORCE INDEX (PRIMARY)
			WHERE (`+where+`) AND expires_at <= `+now, args...)
		if raced(err) && try < rounds {
			continue
		}
		if err != nil {
			return 0, err
		}
		n, err := result.RowsAffected()
		return int(n), err
	}
}
