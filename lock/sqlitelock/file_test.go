package sqlitelock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/sqlitelock"
)

func TestFile(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, string)
	}{
		{"its owner alone can read it", ownerAlone},
		{"a folder that comes later is found", folderLater},
		{"another program's database is unfit", anothersDatabase},
		{"what is no database is unfit", noDatabase},
		{"an old schema is left alone where one must not migrate", noMigrate},
		{"a newer schema is used", newerSchema},
		{"a writer elsewhere makes a call wait no longer than its context", lockedElsewhere},
		{"B32 an insert elsewhere that is committed, or not", conflict},
		{"B57 a long reader holds up no writer", longReader},
		{"what was forgotten is not in the file any more", forgotten},
		{"what was forgotten is not in the log any more", forgottenInLog},
		{"the log is moved beside commits", movedBeside},
		{"the log of a busy writer begins anew", beginsAnew},
		{"many stores may make the file at once", openedAtOnce},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, filepath.Join(t.TempDir(), "claims.db")) })
	}
}

func open(t *testing.T, path string, o sqlitelock.Options) *sqlitelock.Store {
	t.Helper()
	s := sqlitelock.Open(path, o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// apply sends one change with two seconds for it.
func apply(s *sqlitelock.Store, c lock.Change) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := s.Apply(ctx, []lock.Change{c})
	return err
}

func ownerAlone(t *testing.T, path string) {
	if err := apply(open(t, path, sqlitelock.Options{}), locktest.Begin("e")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %v", filepath.Base(p), mode)
		}
	}
}

func folderLater(t *testing.T, path string) {
	path = filepath.Join(filepath.Dir(path), "later", "claims.db")
	s := open(t, path, sqlitelock.Options{})
	if err := apply(s, locktest.Begin("e")); !errors.Is(err, lock.ErrUnavailable) {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), []lock.Key{{}}); !errors.Is(err, lock.ErrUnavailable) {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := apply(s, locktest.Begin("e")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), []lock.Key{{}}); err != nil {
		t.Fatal(err)
	}
}

func anothersDatabase(t *testing.T, path string) {
	db := raw(t, path)
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE users (id)"); err != nil {
		t.Fatal(err)
	}
	if err := apply(open(t, path, sqlitelock.Options{}), locktest.Begin("e")); !errors.Is(err, lock.ErrUnfit) {
		t.Fatal(err)
	}
}

func noDatabase(t *testing.T, path string) {
	if err := os.WriteFile(path, []byte("these are somebody's notes, and longer than a header of SQLite's, "+
		"which is a hundred bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := apply(open(t, path, sqlitelock.Options{}), locktest.Begin("e")); !errors.Is(err, lock.ErrUnfit) {
		t.Fatal(err)
	}
}

func noMigrate(t *testing.T, path string) {
	s := open(t, path, sqlitelock.Options{NoMigrate: true})
	if err := apply(s, locktest.Begin("e")); !errors.Is(err, lock.ErrUnfit) {
		t.Fatal(err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := apply(s, locktest.Begin("e")); err != nil {
		t.Fatal(err)
	}
}

func newerSchema(t *testing.T, path string) {
	before := open(t, path, sqlitelock.Options{})
	if err := apply(before, locktest.Begin("e")); err != nil {
		t.Fatal(err)
	}
	db := raw(t, path)
	defer db.Close()
	if _, err := db.Exec("ALTER TABLE claims ADD COLUMN later INTEGER NOT NULL DEFAULT 7; PRAGMA user_version = 1000"); err != nil {
		t.Fatal(err)
	}
	after := open(t, path, sqlitelock.Options{NoMigrate: true})
	for i, s := range []*sqlitelock.Store{before, after} {
		c := locktest.Begin(fmt.Sprint(i))
		if err := apply(s, c); err != nil {
			t.Fatal(err)
		}
		records, err := s.Read(t.Context(), []lock.Key{locktest.Begin("e").Next.Key, c.Next.Key})
		if err != nil || !records[0].Exists() || !records[1].Exists() {
			t.Fatal(records, err)
		}
		if all, err := s.List(t.Context(), lock.Filter{Namespace: "shop"}, lock.Cursor{}, 10); err != nil || len(all) != 2+i {
			t.Errorf("listed %d, %v", len(all), err)
		}
		if _, err := s.Purge(t.Context(), "shop", 10); err != nil {
			t.Error(err)
		}
	}
}

// B32: another process holds an insert of the key that is not committed. It
// commits, or rolls back: the begin that waits for it is told what stands.
func conflict(t *testing.T, path string) {
	s := open(t, path, sqlitelock.Options{})
	if err := apply(s, locktest.Begin("model")); err != nil {
		t.Fatal(err)
	}
	db := raw(t, path)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		c := locktest.Begin(end)
		if _, err := db.Exec(`BEGIN IMMEDIATE; CREATE TEMP TABLE one AS SELECT * FROM claims LIMIT 1;
			UPDATE one SET digest = ?1, version = randomblob(16); INSERT INTO claims SELECT * FROM one; DROP TABLE one`,
			c.Next.Digest[:]); err != nil {
			t.Fatal(err)
		}
		told := make(chan lock.Result)
		go func() {
			results, err := s.Apply(t.Context(), []lock.Change{c})
			if err != nil {
				results = []lock.Result{{Err: err}}
			}
			told <- results[0]
		}()
		select {
		case r := <-told:
			t.Fatalf("told %v before the other was done", r)
		case <-time.After(50 * time.Millisecond):
		}
		if _, err := db.Exec(end); err != nil {
			t.Fatal(err)
		}
		if r := <-told; r.Err != nil || !r.Standing.Exists() || r.Applied(c) != (end == "ROLLBACK") {
			t.Errorf("%s: told %x, applied %v, %v", end, r.Standing.Version, r.Applied(c), r.Err)
		}
	}
}

// B57: who reads for long, another process too, holds up no writer.
func longReader(t *testing.T, path string) {
	s := open(t, path, sqlitelock.Options{})
	if err := apply(s, locktest.Begin("e")); err != nil {
		t.Fatal(err)
	}
	db := raw(t, path)
	defer db.Close()
	rows, err := db.Query("SELECT digest FROM claims")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for i := range 20 {
		if err := apply(s, locktest.Begin(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if !rows.Next() {
		t.Error("the reader has ended", rows.Err())
	}
}

func lockedElsewhere(t *testing.T, path string) {
	s := open(t, path, sqlitelock.Options{})
	if err := apply(s, locktest.Begin("e")); err != nil {
		t.Fatal(err)
	}
	db := raw(t, path)
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := apply(s, locktest.Begin("f")); !errors.Is(err, lock.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if waited := time.Since(start); waited > 4*time.Second {
		t.Errorf("waited %v of 2s", waited)
	}
	if _, err := s.Read(t.Context(), []lock.Key{{}}); err != nil {
		t.Errorf("read beside a writer: %v", err)
	}
	if _, err := db.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := apply(s, locktest.Begin("g")); err != nil {
		t.Fatal(err)
	}
}

func openedAtOnce(t *testing.T, path string) {
	var wg sync.WaitGroup
	for range 10 {
		s := open(t, path, sqlitelock.Options{})
		wg.Go(func() {
			c := locktest.Begin("e")
			if err := apply(s, c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// forgotten fills pages of its own with a body, has a tombstone take its place,
// and looks for the body in the file. Closing writes the log into the file.
func forgotten(t *testing.T, path string) {
	holds := func(c lock.Change) bool {
		s := sqlitelock.Open(path, sqlitelock.Options{})
		if results, err := s.Apply(context.Background(), []lock.Change{c}); err != nil || !results[0].Applied(c) {
			t.Fatalf("apply: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(file, []byte("CANARY"))
	}
	done := locktest.Begin("evt_1")
	done.Next.State = lock.StateDone
	done.Next.AnswerBody = bytes.Repeat([]byte("CANARY"), 10_000)
	if !holds(done) {
		t.Fatal("the body never was in the file: this shows nothing")
	}
	forget := locktest.Begin("evt_1")
	forget.Expect = done.Next.Version
	forget.Next.State = lock.StateTombstone
	if holds(forget) {
		t.Error("the body is still in the file")
	}
}

// withBody is a done record with a body that is easily found.
func withBody(text string) lock.Change {
	c := locktest.Begin(text)
	c.Next.State, c.Next.AnswerBody = lock.StateDone, bytes.Repeat([]byte("CANARY"), 1000)
	return c
}

func fileHolds(t *testing.T, path string) bool {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(file, []byte("CANARY"))
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for start := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal("not after a minute: " + what)
		}
	}
}

func forgottenInLog(t *testing.T, path string) {
	s := open(t, path, sqlitelock.Options{})
	done := withBody("evt_1")
	locktest.MustApply(t, s, done)
	forget := locktest.Begin("evt_1")
	forget.Expect, forget.Next.State = done.Next.Version, lock.StateTombstone
	locktest.MustApply(t, s, forget)
	until(t, "neither file holds the body", func() bool { return !fileHolds(t, path) && !fileHolds(t, path+"-wal") })
}

func movedBeside(t *testing.T, path string) {
	s := open(t, path, sqlitelock.Options{})
	locktest.MustApply(t, s, withBody("evt_1"))
	until(t, "the file holds the body", func() bool { return fileHolds(t, path) })
}

// beginsAnew writes without a pause: of a log that never began anew, the file would
// be as long as all that was written.
func beginsAnew(t *testing.T, path string) {
	const events, body = 320, 256 << 10
	s := open(t, path, sqlitelock.Options{})
	most := int64(0)
	for i := range events {
		c := withBody(fmt.Sprint("evt_", i))
		c.Next.AnswerBody = make([]byte, body)
		locktest.MustApply(t, s, c)
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, info.Size())
	}
	if most > events*body*9/10 {
		t.Errorf("the log grew to %d MiB", most>>20)
	}
}
