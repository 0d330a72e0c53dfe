package atrest

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oncegate/lock"
	"oncegate/lock/memlock"
)

// A cut store is one that can be out of reach.
type cut struct {
	backend
	out atomic.Bool
}

func (c *cut) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	if c.out.Load() {
		return nil, lock.ErrUnavailable
	}
	return c.backend.Apply(ctx, batch)
}

// What waits in the journal is encrypted as it will be in the store, and readable
// there by whoever has the key.
func TestJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, dir := memlock.New(), t.TempDir()
		ask := &lock.Ask{
			Policy: &lock.Policy{Lease: 2 * time.Second, Retention: time.Hour, KeepRequest: true, KeepDone: func(b []byte) []byte { return b }},
			Items:  []lock.Item{{Key: lock.KeyOf("shop", "stripe", "evt_1"), Text: "evt_1"}}, Wait: 5 * time.Second,
			Request: func() []byte { return []byte("card 4242, in the request") },
		}
		open := func(ids ...string) (*lock.Gate, *cut, *lock.Journal) {
			r := ring(t, ids...)
			j, err := lock.OpenSealedJournal(dir, 0, r.SealRecord)
			if err != nil {
				t.Fatal(err)
			}
			s := &cut{backend: backend{inner.Sibling()}}
			return lock.NewGate(Wrap(s, r), lock.Options{StoreTimeout: time.Second, Journal: j}), s, j
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()

		g, s, j := open("k1")
		a := g.Begin(t.Context(), ask).Attempt
		if err := a.Start(); err != nil {
			t.Fatal(err)
		}
		s.out.Store(true)
		answer := lock.Answer{Status: 200, Header: []lock.Line{{Name: "Location", Value: "/card 4242, in a header"}}, Body: []byte("card 4242, in the answer")}
		if got := a.Settle(lock.Ending{State: lock.StateDone, Reason: lock.ReasonAnswered, Answer: &answer}); got != lock.SettleOwed {
			t.Fatalf("settle: %d", got)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		_ = g.Close(over) // it is cut

		text, err := os.ReadFile(filepath.Join(dir, "settles-0.journal"))
		if err != nil {
			t.Fatal(err)
		}
		blobs := 0
		for _, coded := range regexp.MustCompile(`"([A-Za-z0-9+/]{16,}=*)"`).FindAllSubmatch(text, -1) {
			blob, err := base64.StdEncoding.DecodeString(string(coded[1]))
			if err != nil {
				continue
			}
			blobs++
			text = append(text, blob...)
		}
		if bytes.Contains(text, []byte("4242")) || blobs < 3 {
			t.Errorf("in clear in the journal, of %d blobs: %q", blobs, text)
		}

		// The key has been rotated meanwhile.
		g, _, j = open("k2", "k1")
		time.Sleep(time.Minute)
		d := g.Begin(t.Context(), ask)
		if d.Verdict != lock.Replay || !bytes.Equal(d.Answer.Body, answer.Body) || d.Answer.Header[0] != answer.Header[0] {
			t.Errorf("verdict %d, %+v", d.Verdict, d.Answer)
		}
		records, err := Wrap(backend{inner.Sibling()}, ring(t, "k1")).Read(t.Context(), []lock.Key{ask.Items[0].Key})
		if err != nil {
			t.Fatal(err)
		}
		if request, err := lock.Unseal(records[0].Request); err != nil || !bytes.Contains(request, []byte("4242")) {
			t.Errorf("the kept request reads %q, %v", request, err)
		}
		_ = g.Close(over)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
