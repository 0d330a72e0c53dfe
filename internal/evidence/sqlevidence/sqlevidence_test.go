package sqlevidence_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/internal/evidence"
	"oncegate/internal/evidence/sqlevidence"
	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/mysqllock"
)

var servers testenv.Set

func TestMain(m *testing.M) { os.Exit(servers.Run(m)) }

// An opener opens a store on one table, as one more process does.
type opener func(o sqlevidence.Options) *sqlevidence.Store

// onStores runs a test on each kind of database, with an empty one.
func onStores(t *testing.T, test func(t *testing.T, open opener)) {
	kinds := map[string]func(t *testing.T) opener{
		"sqlite": func(t *testing.T) opener {
			path := filepath.Join(t.TempDir(), "deep", "evidence.db")
			return func(o sqlevidence.Options) *sqlevidence.Store { return must(t)(sqlevidence.SQLite(path, o)) }
		},
		"postgres": func(t *testing.T) opener {
			server := servers.Postgres(t)
			database := server.Database(t)
			return func(o sqlevidence.Options) *sqlevidence.Store {
				return must(t)(sqlevidence.Postgres(server.URL(database), "", o))
			}
		},
		"mariadb": func(t *testing.T) opener {
			server := servers.MariaDB(t)
			database := server.Database(t)
			return func(o sqlevidence.Options) *sqlevidence.Store {
				c, err := mysqllock.Connector(mysqllock.Options{URL: server.URL(database)})
				return must(t)(sqlevidence.MySQL(c, o), err)
			}
		},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) { test(t, kind(t)) })
	}
}

func TestStores(t *testing.T) { onStores(t, testStore) }

func must(t *testing.T) func(s *sqlevidence.Store, err error) *sqlevidence.Store {
	return func(s *sqlevidence.Store, err error) *sqlevidence.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
}

func entry(n int, key string, at time.Time) evidence.Entry {
	return evidence.Entry{
		ID: evidence.ID([]byte(fmt.Sprintf("%016d", n))), Key: lock.KeyOf("shop", "stripe", key), First: at, Last: at, Count: 1,
		Route: "stripe", Provider: "stripe", Result: "replay", Status: 200, Duplicate: true,
		Facts: evidence.Facts{Text: key, Attempt: 1, Remote: "2001:db8::1", Retry: "x-slack-retry-num: 2", Detail: "naïve \x00?"},
	}
}

func testStore(t *testing.T, open opener) {
	ctx := t.Context()
	s, other := open(sqlevidence.Options{}), open(sqlevidence.Options{}) // two processes, which make the table at once
	now := time.Now().UTC().Truncate(time.Microsecond)
	write := func(s *sqlevidence.Store, entries ...evidence.Entry) {
		t.Helper()
		var err error
		for range 3 { // who comes second to making the table may fail once
			if err = s.Write(ctx, entries); err == nil {
				return
			}
		}
		t.Fatal(err)
	}
	find := func(q evidence.Query) []evidence.Entry {
		t.Helper()
		q.Namespace = "shop"
		if q.Limit == 0 {
			q.Limit = 100
		}
		found, err := s.Find(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	first := entry(1, "evt_1", now.Add(-time.Hour))
	first.Result, first.Duplicate, first.AppStatus = "fresh", false, 201
	first.Answer = &evidence.Answer{Header: []evidence.Line{{Name: "Content-Type", Value: "text/plain"}}, Size: 3, Kept: 3, Body: []byte{0, 0xff, '\n'}}
	again := entry(2, "evt_1", now)
	again.Late = true
	foreign := entry(3, "evt_1", now)
	foreign.Key.Namespace = "other"
	refused := entry(4, "evt_2", now.Add(-2*time.Hour))
	refused.Result, refused.Status, refused.Provider = "held", 503, ""
	go func() { _ = other.Write(context.WithoutCancel(ctx), []evidence.Entry{foreign}) }()
	write(s, first, again, refused)
	write(other, foreign)

	if got, want := find(evidence.Query{Scope: "stripe", Digest: first.Key.Digest}), []evidence.Entry{first, again}; !reflect.DeepEqual(got, want) {
		t.Errorf("found\n%+v, want\n%+v", got, want)
	}
	t.Run("an entry is replaced, whoever writes it", func(t *testing.T) {
		again.Count, again.Last, again.Total = 1_000_000, now.Add(time.Second), 17
		write(other, again)
		write(s, again)
		if got := find(evidence.Query{Digest: again.Key.Digest, Limit: 1}); len(got) != 1 || !reflect.DeepEqual(got[0], again) {
			t.Errorf("found %+v", got)
		}
	})
	t.Run("find", func(t *testing.T) {
		for want, q := range map[int]evidence.Query{3: {}, 1: {Result: "held"}, 2: {Since: now.Add(-90 * time.Minute)}, 0: {Scope: "nope"}} {
			if got := find(q); len(got) != want {
				t.Errorf("%+v: %d, want %d", q, len(got), want)
			}
		}
	})
	t.Run("figures", func(t *testing.T) {
		got, err := s.Figures(ctx, "shop", time.UnixMicro(0))
		want := []evidence.Figure{
			{Route: "stripe", Result: "held", Deliveries: 1, Duplicates: 1},
			{Route: "stripe", Provider: "stripe", Result: "fresh", Deliveries: 1},
			{Route: "stripe", Provider: "stripe", Result: "replay", Deliveries: 1_000_000, Duplicates: 1_000_000, Late: 1_000_000},
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err := s.Figures(ctx, "shop", now.Add(-time.Minute)); err != nil || len(got) != 1 {
			t.Errorf("of the last minute: %+v, %v", got, err)
		}
	})
	t.Run("purge", func(t *testing.T) {
		if n, err := s.Purge(ctx, "shop", now.Add(-90*time.Minute), 10); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if n, err := s.Purge(ctx, "shop", now.Add(time.Hour), 1); n != 1 || err != nil {
			t.Errorf("%d, %v: more than the limit", n, err)
		}
	})
	t.Run("forget", func(t *testing.T) {
		if err := s.Forget(ctx, again.Key); err != nil {
			t.Fatal(err)
		}
		if got := find(evidence.Query{}); len(got) != 0 {
			t.Errorf("left: %+v", got)
		}
		if got, err := s.Find(ctx, evidence.Query{Namespace: "other", Limit: 9}); err != nil || len(got) != 1 {
			t.Errorf("of another namespace: %+v, %v", got, err)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		var many []evidence.Entry
		for i := range 1000 {
			many = append(many, entry(100+i, fmt.Sprint("evt_", i, strings.Repeat("k", i)), now))
		}
		write(s, many...)
		if got := find(evidence.Query{Limit: 2000}); len(got) != 1000 {
			t.Errorf("%d of them", len(got))
		}
	})
	t.Run("many that are large", func(t *testing.T) {
		var large []evidence.Entry
		for i := range 600 {
			e := entry(5000+i, "evt_large", now)
			e.Answer = &evidence.Answer{Size: 4096, Kept: 4096, Body: bytes.Repeat([]byte{byte(i)}, 4096)}
			large = append(large, e)
		}
		write(s, large...)
		got := find(evidence.Query{Digest: large[0].Key.Digest, Limit: 1000})
		if len(got) != len(large) || !reflect.DeepEqual(got[0].Answer, large[0].Answer) {
			t.Errorf("%d of them", len(got))
		}
	})
	t.Run("out of reach", func(t *testing.T) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		if err := s.Write(over, []evidence.Entry{first}); !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}
