package atrest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"context"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/memlock"
)

type backend struct{ *memlock.Store }

func (backend) Check(context.Context) ([]lock.Weakness, error) { return nil, nil }
func (backend) Migrate(context.Context) error                  { return nil }

func ring(t testing.TB, ids ...string) *Keyring {
	t.Helper()
	var keys []Key
	for _, id := range ids {
		keys = append(keys, Key{ID: id, Secret: [32]byte([]byte("0123456789abcdef0123456789abcd" + id))})
	}
	r, err := NewKeyring(keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A store that encrypts passes what every store passes.
func TestStore(t *testing.T) {
	r := ring(t, "k1")
	locktest.Run(t, func(testing.TB) locktest.Fixture {
		inner := memlock.New()
		return locktest.Fixture{
			Open:   func(testing.TB) locktest.Store { return Wrap(backend{inner.Sibling()}, r) },
			Pass:   func(_ testing.TB, d time.Duration) { inner.Advance(d) },
			Stored: func(testing.TB) int { return inner.Len() },
		}
	})
}

func TestRotation(t *testing.T) {
	inner := memlock.New()
	key := lock.KeyOf("shop", "stripe", "evt_1")
	secret := []byte("card 4242")
	write := func(s lock.Store, expect lock.Version) lock.Version {
		t.Helper()
		next := lock.Record{
			Key: key, Text: "evt_1", State: lock.StateDone, Attempt: 1, Version: lock.NewVersion(), Retain: time.Hour,
			AnswerStatus: 200, AnswerHeader: lock.Seal([]byte{0}), AnswerBody: lock.Seal(secret), Request: lock.Seal(secret),
		}
		change := lock.Change{Expect: expect, Next: next}
		results, err := s.Apply(t.Context(), []lock.Change{change})
		if err != nil || !results[0].Applied(change) || !bytes.Equal(results[0].Standing.AnswerBody, next.AnswerBody) {
			t.Fatalf("%+v, %v", results, err)
		}
		if !bytes.Equal(change.Next.Request, lock.Seal(secret)) {
			t.Error("the caller's change was changed")
		}
		return next.Version
	}
	body := func(s lock.Store) ([]byte, error) {
		t.Helper()
		records, err := s.Read(t.Context(), []lock.Key{key})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lock.Unseal(records[0].Request); err != nil {
			return nil, err
		}
		answer, err := records[0].StoredAnswer()
		if err != nil {
			return nil, err
		}
		return answer.Body, nil
	}
	readable := func(s lock.Store, want bool) {
		t.Helper()
		got, err := body(s)
		if want && (err != nil || !bytes.Equal(got, secret)) {
			t.Errorf("read %q, %v", got, err)
		}
		if !want && !errors.Is(err, lock.ErrSealed) {
			t.Errorf("read %q, %v; want ErrSealed", got, err)
		}
	}
	bare, one, both, two := backend{inner.Sibling()}, Wrap(backend{inner.Sibling()}, ring(t, "k1")), Wrap(backend{inner.Sibling()}, ring(t, "k2", "k1")), Wrap(backend{inner.Sibling()}, ring(t, "k2"))

	version := write(bare, lock.None)
	readable(one, true) // from before there was a key
	version = write(one, version)
	readable(one, true)
	readable(both, true)
	readable(two, false)
	readable(bare, false)
	raw, err := bare.Read(t.Context(), []lock.Key{key})
	if err != nil || bytes.Contains(raw[0].AnswerBody, secret) || bytes.Contains(raw[0].Request, secret) {
		t.Errorf("stored in clear: %q, %v", raw[0].AnswerBody, err)
	}
	write(both, version)
	readable(both, true)
	readable(two, true)
	readable(one, false)

	t.Run("a blob that was moved or changed can't be read", func(t *testing.T) {
		raw, err := bare.Read(t.Context(), []lock.Key{key})
		if err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*lock.Record){
			"to another column": func(r *lock.Record) { r.AnswerBody = r.Request },
			"to another claim":  func(r *lock.Record) { r.Key = lock.KeyOf("shop", "stripe", "evt_2") },
			"one bit":           func(r *lock.Record) { r.AnswerBody[len(r.AnswerBody)-1] ^= 1 },
			"cut":               func(r *lock.Record) { r.AnswerBody = r.AnswerBody[:10] },
		} {
			r := raw[0]
			r.AnswerBody = bytes.Clone(r.AnswerBody)
			change(&r)
			both.open(&r)
			if _, err := r.StoredAnswer(); !errors.Is(err, lock.ErrSealed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
