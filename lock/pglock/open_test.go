package pglock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/pglock"
)

// What is open is listed rightly again and again, though each listing but the
// first looks only at what was opened since, and at what it remembers.
func TestListOpen(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	lists, works := opened(t, pglock.Options{URL: p.URL(database)}), opened(t, pglock.Options{URL: p.URL(database)})
	listed := func() string {
		t.Helper()
		var texts []string
		for after := (lock.Cursor{}); ; {
			page, err := lists.List(t.Context(), lock.Filter{Namespace: "shop", State: lock.StateRunning}, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				texts = append(texts, r.Text)
				after = lock.Cursor{Scope: r.Scope, Digest: r.Digest}
			}
			if len(page) < 2 {
				slices.Sort(texts)
				return strings.Join(texts, " ")
			}
		}
	}
	want := func(texts string) {
		t.Helper()
		if got := listed(); got != texts {
			t.Errorf("listed %q, not %q", got, texts)
		}
	}
	// passed moves the moments that the index knows, further than any
	// transaction takes.
	passed := func() {
		p.Exec(t, database, "UPDATE oncegate_claims SET opened_at = opened_at - interval '1 hour'")
	}
	a, b, c, d, e := locktest.Begin("a"), locktest.Begin("b"), locktest.Begin("c"), locktest.Begin("d"), locktest.Begin("e")
	want("")
	locktest.MustApply(t, works, a, b, c, d)
	want("a b c d")
	passed()
	want("a b c d")
	done := locktest.Settle(b)
	locktest.MustApply(t, works, done, locktest.Settle(d))
	want("a c")
	passed()
	locktest.MustApply(t, works, e)
	want("a c e")
	passed()
	again := done // an operator has it run once more
	again.Expect, again.Next.Version = done.Next.Version, lock.NewVersion()
	again.Next.State, again.Next.Attempt = lock.StateRunning, 2
	locktest.MustApply(t, works, again)
	want("a b c e")
	passed()
	var many []lock.Change
	for i := range 1200 { // more than one statement asks about
		many = append(many, locktest.Begin(fmt.Sprintf("m%04d", i)))
	}
	locktest.MustApply(t, works, many...)
	if n := len(strings.Fields(listed())); n != 1204 {
		t.Errorf("%d are listed", n)
	}
	passed()
	for i := range many {
		many[i] = locktest.Settle(many[i])
	}
	locktest.MustApply(t, works, many...)
	want("a b c e")
}

// A purge that is done rests, so that background work may call it all the time.
func TestPurgeRests(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	s := opened(t, pglock.Options{URL: p.URL(database)})
	var batch []lock.Change
	for i := range 6000 { // several strides
		c := locktest.Settle(locktest.Begin(fmt.Sprint(i)))
		c.Expect = lock.None
		if batch = append(batch, c); len(batch) == 500 {
			locktest.MustApply(t, s, batch...)
			batch = nil
		}
	}
	p.Exec(t, database, "UPDATE oncegate_claims SET expires_at = now() - interval '1 s' WHERE get_byte(digest, 0) % 2 = 0")
	var expired, removed int
	c := session(t, p.URL(database))
	if err := c.QueryRow(t.Context(), "SELECT count(*) FROM oncegate_claims WHERE expires_at < now()").Scan(&expired); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		p, err := s.Purge(t.Context(), "shop", 1000)
		if err != nil {
			t.Fatal(err)
		}
		removed, more = removed+p.Removed, p.More
	}
	if removed != expired {
		t.Errorf("%d of %d were removed", removed, expired)
	}
	p.Exec(t, database, "UPDATE oncegate_claims SET expires_at = now() - interval '1 s'")
	if p, err := s.Purge(t.Context(), "shop", 1000); err != nil || p != (lock.Purged{}) {
		t.Errorf("right after a pass, another did %+v; %v", p, err)
	}
	other := opened(t, pglock.Options{URL: p.URL(database)})
	if p, err := other.Purge(t.Context(), "shop", 1000); err != nil || p != (lock.Purged{Removed: 1000, More: true}) {
		t.Errorf("another store's first step did %+v; %v", p, err)
	}
}
