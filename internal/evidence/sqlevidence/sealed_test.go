package sqlevidence_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"oncegate/internal/atrest"
	"oncegate/internal/evidence"
	"oncegate/internal/evidence/sqlevidence"
	"oncegate/lock"
)

func ring(t *testing.T, ids ...string) *atrest.Keyring {
	t.Helper()
	var keys []atrest.Key
	for _, id := range ids {
		keys = append(keys, atrest.Key{ID: id, Secret: [32]byte([]byte("0123456789abcdef0123456789abcd" + id))})
	}
	r, err := atrest.NewKeyring(keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What entries say is encrypted under the first key of a ring, and read under any.
func TestKeys(t *testing.T) {
	onStores(t, func(t *testing.T, open opener) {
		bare := open(sqlevidence.Options{})
		one := open(sqlevidence.Options{Ring: ring(t, "k1")})
		both := open(sqlevidence.Options{Ring: ring(t, "k2", "k1")})
		two := open(sqlevidence.Options{Ring: ring(t, "k2")})
		now := time.Now().UTC().Truncate(time.Microsecond)
		written := map[*sqlevidence.Store]evidence.Entry{}
		for i, s := range []*sqlevidence.Store{bare, one, both} {
			e := entry(i+1, "evt_canary", now.Add(time.Duration(i)*time.Second))
			e.Remote, e.Who, e.Why = "198.51.100.7", "alice canary", "why canary"
			e.Answer = &evidence.Answer{Header: []evidence.Line{{Name: "Link", Value: "canary"}}, Size: 6, Kept: 6, Body: []byte("canary")}
			if err := s.Write(t.Context(), []evidence.Entry{e}); err != nil {
				t.Fatal(err)
			}
			written[s] = e
		}
		read := func(s *sqlevidence.Store) []evidence.Entry {
			t.Helper()
			found, err := s.Find(t.Context(), evidence.Query{Namespace: "shop", Scope: "stripe", Digest: written[bare].Key.Digest, Limit: 9})
			if err != nil || len(found) != 3 {
				t.Fatalf("%d entries, %v", len(found), err)
			}
			return found
		}
		sealed := func(e evidence.Entry) evidence.Entry {
			e.Facts = evidence.Facts{Sealed: true}
			return e
		}
		before, old, young := written[bare], written[one], written[both]
		for name, c := range map[string]struct {
			by   *sqlevidence.Store
			want []evidence.Entry
		}{
			"without a key":              {bare, []evidence.Entry{before, sealed(old), sealed(young)}},
			"before the rotation":        {one, []evidence.Entry{before, old, sealed(young)}},
			"while the old key is there": {both, []evidence.Entry{before, old, young}},
			"when the old key has gone":  {two, []evidence.Entry{before, sealed(old), young}},
		} {
			if got := read(c.by); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s: found\n%+v, want\n%+v", name, got, c.want)
			}
		}
		t.Run("what is written anew is encrypted under the new key", func(t *testing.T) {
			old.Count, old.Last = 2, old.Last.Add(time.Minute)
			if err := both.Write(t.Context(), []evidence.Entry{old}); err != nil {
				t.Fatal(err)
			}
			if got := read(two)[1]; !reflect.DeepEqual(got, old) {
				t.Errorf("found %+v", got)
			}
		})
		t.Run("what one counts by is in clear", func(t *testing.T) {
			figures, err := bare.Figures(t.Context(), "shop", time.UnixMicro(0))
			if err != nil || len(figures) != 1 || figures[0].Deliveries != 4 {
				t.Errorf("%+v, %v", figures, err)
			}
		})
	})
}

// B72 With a key no word of an entry is in the file, and an entry that is moved to
// another, or changed, can't be read.
func TestSealedFile(t *testing.T) {
	path := t.TempDir() + "/evidence.db"
	s := must(t)(sqlevidence.SQLite(path, sqlevidence.Options{Ring: ring(t, "k1")}))
	for i := range 2 {
		e := entry(i, fmt.Sprint("evt_canary", i), time.Now().Add(time.Duration(i)*time.Second))
		e.Remote, e.Why, e.Retry, e.Answer = "canary", "canary", "canary", &evidence.Answer{Size: 6, Kept: 6, Body: []byte("canary")}
		if err := s.Write(t.Context(), []evidence.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var id, first, second []byte
	if err := db.QueryRow(`SELECT a.id, a.facts, b.facts FROM oncegate_evidence a, oncegate_evidence b WHERE a.id < b.id`).Scan(&id, &first, &second); err != nil {
		t.Fatal(err)
	}
	for _, clear := range []string{"canary", "naïve"} {
		if bytes.Contains(first, []byte(clear)) {
			t.Errorf("in clear: %q", first)
		}
	}
	cut := bytes.Clone(first)
	cut[len(cut)-1] ^= 1
	for name, facts := range map[string][]byte{"another's": second, "changed": cut, "cut": first[:20], "nothing": {}} {
		if _, err := db.Exec("UPDATE oncegate_evidence SET facts = ? WHERE id = ?", facts, id); err != nil {
			t.Fatal(err)
		}
		found, err := s.Find(t.Context(), evidence.Query{Namespace: "shop", Limit: 9})
		if err != nil || len(found) != 2 || !found[0].Sealed || found[1].Sealed {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

// B72 What is forgotten is nowhere in the files, while they stay open.
func TestForgottenInFile(t *testing.T) {
	dir := t.TempDir()
	s := must(t)(sqlevidence.SQLite(dir+"/evidence.db", sqlevidence.Options{}))
	for i := range 50 {
		e := entry(i, fmt.Sprint("evt_", i%2), time.Now())
		e.Remote = fmt.Sprint("canary", i%2)
		if err := s.Write(t.Context(), []evidence.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Forget(t.Context(), lock.KeyOf("shop", "stripe", "evt_1")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(dir + "/*")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("canary1")) {
			t.Errorf("%s still has what was forgotten", file)
		}
	}
}
