package lock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oncegate/lock"
	"oncegate/lock/memlock"
)

// journaled returns a Gate whose store fails as told, and its journal.
func (r *rig) journaled(dir string) (*lock.Gate, *faulty, *lock.Journal) {
	r.t.Helper()
	j, err := lock.OpenJournal(dir, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	f := &faulty{Store: r.store.Sibling()}
	g := lock.NewGate(f, lock.Options{Journal: j, Observe: func(e lock.Event) { r.events[e.Kind].Add(1) }})
	return g, f, j
}

// kill ends a process as SIGKILL does: nothing it does has any effect from now on.
func kill(g *lock.Gate, f *faulty, j *lock.Journal) {
	_ = j.Close()
	f.set(func(int, []lock.Change) (bool, bool) { return false, false })
	f.mu.Lock()
	f.reads = func() bool { return false }
	f.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = g.Close(ctx)
}

var out = func(int, []lock.Change) (bool, bool) { return false, false }

func TestJournal(t *testing.T) {
	bubble(t, "B35 a settle that was owed is delivered by the next process", func(t *testing.T, r *rig) {
		dir := t.TempDir()
		g, f, j := r.journaled(dir)
		long := with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.Lease = time.Second })
		attempt := r.run(g, long)
		f.set(out)
		if got := attempt.Settle(done("paid")); got != lock.SettleOwed {
			t.Fatalf("settle: %d", got)
		}
		kill(g, f, j)

		// Another process finds the lease over, and runs the event no more than the policy lets it.
		b := r.gate()
		hold := with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.OnUnknown = lock.HoldUnknown })
		r.begin(b, hold, lock.Held)

		g, f, j = r.journaled(dir)
		if j.Found.Owed != 1 || g.Owed() != 1 {
			t.Errorf("found %+v, owed %d", j.Found, g.Owed())
		}
		if d := r.begin(g, ask("evt_1"), lock.Replay); !d.Waited || string(d.Answer.Body) != "paid" {
			t.Error("the delivery did not wait for what was owed")
		}
		r.replays(b, "evt_1", "paid")
		kill(g, f, j)
		g, f, j = r.journaled(dir)
		if j.Found.Owed != 0 {
			t.Errorf("paid, and still found: %+v", j.Found)
		}
		kill(g, f, j)
	})

	bubble(t, "B25 a claim whose settle is owed is renewed by the next process until that stands", func(t *testing.T, r *rig) {
		dir := t.TempDir()
		g, f, j := r.journaled(dir)
		long := func(id string) *lock.Ask {
			return with(ask(id), func(a *lock.Ask, p *lock.Policy) {
				p.Lease, p.KeepRequest, a.Wait = 10*time.Second, true, time.Second
				a.Request = func() []byte { return []byte("request of " + id) }
			})
		}
		big, small := r.run(g, long("evt_1")), small(lock.ErrUnavailable)
		hung := r.run(g, long("evt_2"))
		f.set(out)
		go hung.Settle(broken)
		if got := big.Settle(done(string(make([]byte, 2000)))); got != lock.SettleOwed {
			t.Fatalf("settle: %d", got)
		}
		time.Sleep(time.Second)
		kill(g, f, j)

		g, f, j = r.journaled(dir)
		f.refuse(func(batch []lock.Change) error {
			for i := range batch {
				if batch[i].Next.State == lock.StateUnknown {
					return lock.ErrUnavailable
				}
			}
			return small(batch)
		})
		time.Sleep(5 * time.Second)
		b := r.gate()
		for range 10 {
			time.Sleep(10 * time.Second)
			r.begin(b, long("evt_1"), lock.Busy)
			if rec := r.record("evt_2"); rec.State != lock.StateRunning || rec.Lease <= 0 || string(unsealed(t, rec.Request)) != "request of evt_2" {
				t.Errorf("%s for another %v", rec.State, rec.Lease)
			}
		}
		f.refuse(nil)
		time.Sleep(5 * time.Second)
		if d := r.begin(b, long("evt_1"), lock.Replay); len(d.Answer.Body) != 2000 {
			t.Error("another answer")
		}
		if rec := r.record("evt_2"); rec.State != lock.StateUnknown || rec.Reason != lock.ReasonBroken || rec.Unanswered != 1 {
			t.Errorf("stands as %s (%s), %d without an answer", rec.State, rec.Reason, rec.Unanswered)
		}
		kill(g, f, j)
	})

	bubble(t, "a given-up begin is undone by the next process", func(t *testing.T, r *rig) {
		dir := t.TempDir()
		g, f, j := r.journaled(dir)
		var late []lock.Change
		f.set(func(_ int, batch []lock.Change) (bool, bool) { late = batch; return false, false })
		r.begin(g, ask("evt_1"), lock.Unavailable)
		kill(g, f, j)
		g, f, j = r.journaled(dir)
		time.Sleep(time.Second)
		if _, err := r.store.Apply(context.Background(), late); err != nil {
			t.Fatal(err)
		}
		if rec := r.record("evt_1"); rec.State != lock.StateReleased || rec.Reason != lock.ReasonGivenUp {
			t.Errorf("stands as %s (%s)", rec.State, rec.Reason)
		}
		kill(g, f, j)
	})

	bubble(t, "what is owed and kept is not lost, says Close", func(t *testing.T, r *rig) {
		g, f, j := r.journaled(t.TempDir())
		attempt := r.run(g, ask("evt_1"))
		f.set(out)
		attempt.Settle(done("kept"))
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}

		bare := r.gate(f)
		f.set(nil)
		attempt = r.run(bare, ask("evt_2"))
		f.set(out)
		attempt.Settle(done("lost"))
		if err := bare.Close(context.Background()); err == nil {
			t.Error("without a journal it is lost, and Close does not say so")
		}
	})

	bubble(t, "an unknown that is delivered later gives the app its time", func(t *testing.T, r *rig) {
		dir := t.TempDir()
		g, f, j := r.journaled(dir)
		limited := with(ask("evt_1"), func(_ *lock.Ask, p *lock.Policy) { p.AppLimit = time.Minute })
		attempt := r.run(g, limited)
		f.set(out)
		attempt.Settle(broken)
		kill(g, f, j)
		time.Sleep(10 * time.Second)
		g, f, j = r.journaled(dir)
		time.Sleep(time.Second)
		if rec := r.record("evt_1"); rec.State != lock.StateUnknown || rec.RunsUntil < 48*time.Second || rec.Reason != lock.ReasonBroken {
			t.Errorf("%s (%s), runs for %v", rec.State, rec.Reason, rec.RunsUntil)
		}
		kill(g, f, j)
	})

	t.Run("nobody else reads it", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "settles-0.journal")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		j, err := lock.OpenJournal(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	})

	t.Run("every process has its own, and the next takes over what one left", func(t *testing.T) {
		dir := t.TempDir()
		a, err := lock.OpenJournal(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := lock.OpenJournal(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		owe(t, a, 3)
		owe(t, b, 4)
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it is in one file afterwards
			c, err := lock.OpenJournal(dir, 0)
			if err != nil {
				t.Fatal(err)
			}
			if c.Found.Owed != 7 {
				t.Errorf("found %+v", c.Found)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) != 1 {
			t.Errorf("files left: %v", files)
		}
	})

	t.Run("a torn end is cut off, wherever it is", func(t *testing.T) {
		whole := journalOf(t, 3)
		for n := 0; n < len(whole); n += 41 {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "settles-0.journal"), whole[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := lock.OpenJournal(dir, 0)
			if err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if want := j.Found.Owed == 3; want || j.Found.Damaged != 0 {
				t.Errorf("%d bytes: %+v", n, j.Found)
			}
			owe(t, j, 1) // it goes on behind what is sound
			owed := j.Found.Owed + 1
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if j, err = lock.OpenJournal(dir, 0); err != nil || j.Found.Owed != owed || j.Found.Torn != 0 {
				t.Fatalf("%d bytes, again: %v %+v", n, err, j.Found)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})

	t.Run("a damaged record in the middle costs itself alone", func(t *testing.T) {
		whole := journalOf(t, 3)
		// Inside a text, so that it is the checksum alone that knows.
		whole[bytes.Index(whole, []byte(`"AnswerBody":"`))+30] = 'z'
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "settles-0.journal"), whole, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := lock.OpenJournal(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if j.Found.Owed != 2 || j.Found.Damaged != 1 || j.Found.Torn != 0 {
			t.Errorf("found %+v", j.Found)
		}
	})

	t.Run("a file of another kind is left alone", func(t *testing.T) {
		dir := t.TempDir()
		text := strings.Repeat("something else\n", 10)
		path := filepath.Join(dir, "settles-0.journal")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := lock.OpenJournal(dir, 0); err == nil {
			t.Fatal("opened")
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("changed: %v", err)
		}
	})

	t.Run("no folder", func(t *testing.T) {
		if _, err := lock.OpenJournal(filepath.Join(t.TempDir(), "none"), 0); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})

	bubble(t, "a full journal is told, and the debt kept in memory", func(t *testing.T, r *rig) {
		j, err := lock.OpenJournal(t.TempDir(), 100)
		if err != nil {
			t.Fatal(err)
		}
		f := &faulty{Store: r.store.Sibling()}
		var told error
		g := lock.NewGate(f, lock.Options{Journal: j, Observe: func(e lock.Event) {
			if e.Kind == lock.EventJournalError {
				told = e.Err
			}
		}})
		attempt := r.run(g, ask("evt_1"))
		f.set(out)
		if got := attempt.Settle(done("kept")); got != lock.SettleOwed || !errors.Is(told, lock.ErrJournalFull) {
			t.Errorf("settle: %d, told %v", got, told)
		}
		f.set(nil)
		time.Sleep(5 * time.Second)
		r.replays(g, "evt_1", "kept")
		if err := errors.Join(g.Close(context.Background()), j.Close()); err != nil {
			t.Error(err)
		}
	})

	t.Run("it does not grow by what is paid", func(t *testing.T) {
		dir := t.TempDir()
		j, err := lock.OpenJournal(dir, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		stay := lock.OweTo(j, 5)
		for range 300 {
			debts := lock.OweTo(j, 10)
			if debts.Err != nil {
				t.Fatal(debts.Err)
			}
			debts.Pay()
		}
		info, err := os.Stat(filepath.Join(dir, "settles-0.journal"))
		if err != nil || info.Size() > 1<<20 {
			t.Errorf("%d bytes", info.Size())
		}
		stay.Pay()
		if info, err = os.Stat(filepath.Join(dir, "settles-0.journal")); err != nil || info.Size() > 100 {
			t.Errorf("%d bytes when all is paid", info.Size())
		}
	})

	t.Run("many at once share the disk's time, and none is lost", func(t *testing.T) {
		dir := t.TempDir()
		j, err := lock.OpenJournal(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		errs := make(chan error)
		for range 50 {
			go func() { errs <- lock.OweTo(j, 2).Err }()
		}
		for range 50 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j, err = lock.OpenJournal(dir, 0); err != nil || j.Found.Owed != 100 {
			t.Fatalf("%v, found %+v", err, j.Found)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func unsealed(t *testing.T, blob []byte) []byte {
	t.Helper()
	text, err := lock.Unseal(blob)
	if err != nil {
		t.Error(err)
	}
	return text
}

func owe(t *testing.T, j *lock.Journal, n int) {
	t.Helper()
	if err := lock.OweTo(j, n).Err; err != nil {
		t.Fatal(err)
	}
}

// journalOf returns the bytes of a journal with n debts.
func journalOf(t testing.TB, n int) []byte {
	t.Helper()
	dir := t.TempDir()
	j, err := lock.OpenJournal(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lock.OweTo(j, n).Err, j.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "settles-0.journal"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzJournal opens any bytes as a journal: it never panics, what it found it
// finds again, and a Gate can pay it.
func FuzzJournal(f *testing.F) {
	whole := journalOf(f, 2)
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte("oncegate journal 1\n"))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "settles-0.journal"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := lock.OpenJournal(dir, 0)
		if err != nil {
			return
		}
		found := j.Found.Owed
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j, err = lock.OpenJournal(dir, 0); err != nil || j.Found.Owed != found || j.Found.Torn != 0 {
			t.Fatalf("%v: found %+v, before %d", err, j.Found, found)
		}
		g := lock.NewGate(memlock.New(), lock.Options{Journal: j, StoreTimeout: 50 * time.Millisecond})
		_ = g.Close(context.Background())
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzDebt decodes any payload, and what it could read it reads the same again.
func FuzzDebt(f *testing.F) {
	for _, p := range lock.Payloads() {
		f.Add(p)
	}
	f.Add([]byte{2, 1, '{', '}'})
	f.Fuzz(func(t *testing.T, payload []byte) {
		again, err := lock.Recode(payload)
		if err != nil {
			return
		}
		twice, err := lock.Recode(again)
		if err != nil || fmt.Sprintf("%q", twice) != fmt.Sprintf("%q", again) {
			t.Errorf("%q becomes %q (%v)", again, twice, err)
		}
	})
}
