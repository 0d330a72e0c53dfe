package redislock

import (
	"context"
	"fmt"
	"time"

	"oncegate/lock"
)

// Apply implements lock.Store.
func (s *Store) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	results := make([]lock.Result, len(batch))
	runs := make([]run, len(batch))
	for i := range batch {
		runs[i] = s.change(&batch[i], &results[i].Standing)
	}
	if err := s.write(ctx, "apply", newScript(applyText), runs); err != nil {
		return nil, err
	}
	return results, nil
}

// change is the run that makes c, and says in r what stands then.
func (s *Store) change(c *lock.Change, r *lock.Record) run {
	n := &c.Next
	due, expires, open := any(""), any(""), n.State == lock.StateRunning || n.State == lock.StateUnknown
	if n.Due != 0 {
		due = n.Due.Microseconds()
	}
	if n.Expires() {
		expires = n.Retain.Microseconds()
	}
	return run{
		keys: []string{s.key(&n.Key), s.openKey(n.Namespace, n.Digest[0])},
		args: []any{
			c.Expect[:], n.Version[:], []byte{byte(n.State)}, n.Lease.Microseconds(), n.RunsUntil.Microseconds(),
			due, expires, c.Seen, open, encodeRest(n), s.options.Replicas > 0,
		},
		told: func(parts []any) error { return changed(c, parts, r) },
	}
}

// changed reads what the script for changes returned.
func changed(c *lock.Change, parts []any, r *lock.Record) (err error) {
	if len(parts) != 3 {
		return errAnswer
	}
	made, ok := parts[0].(int64)
	number, ok2 := parts[1].(int64)
	if !ok || !ok2 {
		return errAnswer
	}
	if made == 0 {
		// Past retention it stands only for the change that wrote it.
		*r, err = standing(&c.Next.Key, float64(number), parts[2], &c.Next.Version)
		return err
	}
	last, ok := parts[2].(int64)
	if !ok {
		return errAnswer
	}
	*r = c.Next
	r.FirstSeen, r.LastSeen, r.Written = time.Duration(number)*time.Microsecond, time.Duration(last)*time.Microsecond, 0
	if !r.Expires() {
		r.Retain = 0
	}
	return nil
}

var errAnswer = fmt.Errorf("the server's answer has another form than the script's: %w", lock.ErrUnfit)

// standing is the record in a value, at the server's time. One past its
// retention is none, unless its version is the one given.
func standing(k *lock.Key, now float64, value any, unless *lock.Version) (lock.Record, error) {
	text, ok := value.(string)
	if !ok {
		return lock.Record{}, errAnswer
	}
	if text == "" {
		return lock.Record{}, nil
	}
	r, at, err := decode(*k, []byte(text))
	if err != nil || at.over(now) && (unless == nil || r.Version != *unless) {
		return lock.Record{}, err
	}
	at.tell(&r, now)
	return r, nil
}

// Read implements lock.Store.
func (s *Store) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	records := make([]lock.Record, len(keys))
	runs := make([]run, len(keys))
	for i := range keys {
		runs[i] = s.look(&keys[i], &records[i])
	}
	if err := s.read(ctx, "read", newScript(readText), runs); err != nil {
		return nil, err
	}
	return records, nil
}

// look is the run that says in r what stands under k.
func (s *Store) look(k *lock.Key, r *lock.Record) run {
	return run{
		keys: []string{s.key(k)},
		told: func(parts []any) (err error) {
			if len(parts) != 2 {
				return errAnswer
			}
			now, ok := parts[0].(int64)
			if !ok {
				return errAnswer
			}
			*r, err = standing(k, float64(now), parts[1], nil)
			return err
		},
	}
}
