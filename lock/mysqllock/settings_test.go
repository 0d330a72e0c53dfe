package mysqllock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/mysqllock"
)

// What an administrator has made a user's default must not keep what is committed
// from being so, nor rows from being seen.
func TestDefaults(t *testing.T) {
	server := testenv.MariaDB(t, hostile...)
	database := server.Database(t)
	admin := raw(t, server.DSN(database))
	// init_connect is for those who may not do everything.
	exec(t, admin, "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON "+database+".* TO 'shop'@'%' IDENTIFIED BY 'one'")
	url := "mysql://shop:one@" + server.Addr + "/" + database
	s := opened(t, mysqllock.Options{URL: url, Pool: 2})
	var events, done []lock.Change
	var keys []lock.Key
	for i := range 10 {
		e := locktest.Begin(fmt.Sprint(i))
		events, done, keys = append(events, e), append(done, locktest.Settle(e)), append(keys, e.Next.Key)
	}
	locktest.MustApply(t, s, events...)
	locktest.MustApply(t, s, done...)
	locktest.MustApply(t, s, locktest.Begin("one more, by itself"))
	server.Kill(t) // what is not committed is gone
	server.Start(t)
	got, err := opened(t, mysqllock.Options{URL: url}).Read(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range got {
		if r.State != lock.StateDone {
			t.Errorf("%d is %s", i, r.State)
		}
	}
	if n := stored(t, admin); n != 11 {
		t.Errorf("%d records are stored", n)
	}
}

// 1205: another session does not let go of a row. The change is made again as long as
// there is time, and when there is none, nothing of it is there.
func TestLockWait(t *testing.T) {
	server := testenv.MariaDB(t, "--innodb-lock-wait-timeout=1")
	database := server.Database(t)
	s := opened(t, mysqllock.Options{URL: server.URL(database)})
	one, two := locktest.Begin("one"), locktest.Begin("two")
	locktest.MustApply(t, s, one, two)
	tx, err := raw(t, server.DSN(database)).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SELECT 1 FROM oncegate_claims WHERE digest = ? FOR UPDATE", one.Next.Digest[:]); err != nil {
		t.Fatal(err)
	}
	batch := []lock.Change{locktest.Settle(one), locktest.Settle(two)}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if _, err := s.Apply(ctx, batch); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("behind a lock: %v", err)
	}
	told := applying(t, s, batch)
	time.Sleep(1200 * time.Millisecond) // past the server's limit, so that it has said 1205 once
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil {
		t.Error(err)
	}
}

// The server dies in the middle of a batch's transaction, and comes back: nothing of
// the batch is there, and it is made when it is sent again.
func TestKilledInBatch(t *testing.T) {
	server := testenv.MariaDB(t)
	database := server.Database(t)
	s := opened(t, mysqllock.Options{URL: server.URL(database)})
	one, two := locktest.Begin("one"), locktest.Begin("two")
	locktest.MustApply(t, s, one, two)
	db := raw(t, server.DSN(database))
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	last := one // the store takes rows in the order of their digests
	if string(two.Next.Digest[:]) > string(one.Next.Digest[:]) {
		last = two
	}
	if _, err := tx.Exec("SELECT 1 FROM oncegate_claims WHERE digest = ? FOR UPDATE", last.Next.Digest[:]); err != nil {
		t.Fatal(err)
	}
	batch := []lock.Change{locktest.Settle(one), locktest.Settle(two)}
	told := make(chan error)
	go func() {
		_, err := s.Apply(t.Context(), batch)
		told <- err
	}()
	lockWait(t, raw(t, server.DSN(database)))
	server.Kill(t)
	if err := <-told; !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("a server that died: %v", err)
	}
	server.Start(t)
	got, err := s.Read(t.Context(), []lock.Key{one.Next.Key, two.Next.Key})
	if err != nil || got[0].State != lock.StateRunning || got[1].State != lock.StateRunning {
		t.Errorf("afterwards there is %v, %v", got, err)
	}
	locktest.MustApply(t, s, batch...)
}

// What the server takes for too large is refused, and breaks nothing else.
func TestPacket(t *testing.T) {
	server := testenv.MariaDB(t, "--max-allowed-packet=1M")
	s := opened(t, mysqllock.Options{URL: server.URL(server.Database(t))})
	e := locktest.Begin("e")
	locktest.MustApply(t, s, e)
	large := locktest.Settle(e)
	large.Next.AnswerBody = make([]byte, 2<<20)
	if _, err := s.Apply(t.Context(), []lock.Change{large}); err == nil {
		t.Error("an answer larger than a packet was taken")
	}
	locktest.MustApply(t, s, locktest.Settle(e), locktest.Begin("other"))
	found, err := s.Check(t.Context())
	if err != nil || len(found) != 1 || found[0].Name != "packet" {
		t.Errorf("found %v, %v", found, err)
	}
}
