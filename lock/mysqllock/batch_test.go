package mysqllock_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"oncegate/lock"
	"oncegate/lock/mysqllock"
)

// B13: the claims of a batch keep 25 MB of requests together, which is more than a
// server takes in one statement by default. They are claimed, renewed, settled and
// decided on all the same.
func TestLargeBatch(t *testing.T) {
	server := servers.MariaDB(t)
	s := opened(t, mysqllock.Options{URL: server.URL(server.Database(t))})
	g := lock.NewGate(s, lock.Options{StoreTimeout: time.Minute})
	defer func() {
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	body := bytes.Repeat([]byte("x"), 100<<10)
	ask := &lock.Ask{
		Policy:  &lock.Policy{Lease: time.Minute, Retention: time.Hour, OnUnknown: lock.HoldUnknown, KeepRequest: true},
		Request: func() []byte { return body },
	}
	var keys []lock.Key
	for i := range 250 {
		text := fmt.Sprint("evt_", i)
		keys = append(keys, lock.KeyOf("shop", "mail", text))
		ask.Items = append(ask.Items, lock.Item{Key: keys[i], Text: text})
	}
	d := g.Begin(t.Context(), ask)
	if d.Verdict != lock.Run {
		t.Fatalf("verdict %d, %v", d.Verdict, d.Err)
	}
	if r := d.Attempt.Settle(lock.Ending{State: lock.StateUnknown, Reason: lock.ReasonTimeout}); r != lock.SettleStands {
		t.Fatalf("settled: %d", r)
	}
	records, err := s.Read(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	words := make([]lock.Word, len(records))
	for i := range records {
		if len(records[i].Request) < len(body) {
			t.Fatalf("%d bytes of the request are kept", len(records[i].Request))
		}
		words[i] = lock.Word{Verb: lock.VerbReopen, Key: keys[i], Version: records[i].Version, Who: "ann", Why: "looked", Now: true, Retention: time.Hour}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, told := range lock.Decide(ctx, s, words) {
		if told.Err != nil {
			t.Fatalf("%d: %v", i, told.Err)
		}
	}
}
