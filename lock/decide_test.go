package lock

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	retry := Policy{Lease: time.Minute}
	hold := Policy{Lease: time.Minute, OnUnknown: HoldUnknown}
	asks := Policy{Lease: time.Minute, OnUnknown: WitnessUnknown, Attempts: 1}
	thrice := Policy{Lease: time.Minute, Attempts: 3}
	for _, c := range []struct {
		name   string
		rec    Record
		policy Policy
		want   meaning
		until  time.Duration
	}{
		{"absent", Record{}, retry, meansBegin, 0},
		{"absent, under hold", Record{}, hold, meansBegin, 0},
		{"running under a live lease", Record{State: StateRunning, Lease: 3, RunsUntil: 9}, retry, meansWait, 3},
		{"running, the app limit over", Record{State: StateRunning, Lease: 3, RunsUntil: -9}, retry, meansWait, 3},
		{"the lease ends now", Record{State: StateRunning, Lease: 0, RunsUntil: 9}, retry, meansLapsed, 0},
		{"the lease is over", Record{State: StateRunning, Lease: -1, RunsUntil: 9}, retry, meansLapsed, 0},
		{"the lease is over, under hold", Record{State: StateRunning, Lease: -1}, hold, meansLapsed, 0},
		{"done", Record{State: StateDone}, retry, meansReplay, 0},
		{"done late, under hold", Record{State: StateDone, Mark: MarkLate | MarkDoubt}, hold, meansReplay, 0},
		{"released", Record{State: StateReleased}, retry, meansBegin, 0},
		{"released, under hold, after doubt", Record{State: StateReleased, Mark: MarkDoubt}, hold, meansBegin, 0},
		{"tombstone", Record{State: StateTombstone, Attempt: 7}, retry, meansBegin, 0},
		{"unknown, the app may be running", Record{State: StateUnknown, RunsUntil: 5}, retry, meansSettling, 5},
		{"unknown, the app ends now", Record{State: StateUnknown, RunsUntil: 0}, retry, meansBegin, 0},
		{"unknown, the app has ended", Record{State: StateUnknown, RunsUntil: -5}, retry, meansBegin, 0},
		{"unknown under hold, the app may be running", Record{State: StateUnknown, RunsUntil: 5}, hold, meansHeld, 0},
		{"unknown under hold", Record{State: StateUnknown, RunsUntil: -5}, hold, meansHeld, 0},
		{"unknown, a witness can tell, the app may be running", Record{State: StateUnknown, RunsUntil: 5, Unanswered: 9}, asks, meansWitness, 5},
		{"unknown, a witness can tell", Record{State: StateUnknown, RunsUntil: -5, Unanswered: 9}, asks, meansWitness, 0},
		{"two endings without an answer", Record{State: StateUnknown, RunsUntil: -5, Unanswered: 2}, thrice, meansBegin, 0},
		{"three endings without an answer", Record{State: StateUnknown, RunsUntil: -5, Unanswered: 3}, thrice, meansHeld, 0},
		{"many endings without an answer, no limit", Record{State: StateUnknown, RunsUntil: -5, Unanswered: 300}, retry, meansBegin, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, until := decide(&c.rec, &c.policy); got != c.want || until != c.until {
				t.Errorf("means %d for %d, want %d for %d", got, until, c.want, c.until)
			}
		})
	}
}

func TestBegun(t *testing.T) {
	p := Policy{Lease: 2, AppLimit: 5, Retention: 9}
	ask := Ask{Policy: &p, Payload: Digest{1}}
	old := Record{
		State: StateUnknown, Attempt: 4, Unanswered: 2, Deliveries: 6, Mark: MarkDoubt | MarkLate | MarkOperator | 3*oneWord,
		Reason: ReasonLapsed, AnswerBody: []byte("x"), Request: []byte("y"), Retain: 3, RunsUntil: -1,
	}
	next := begun(&old, Item{Text: "evt"}, &ask, Token{7})
	want := Record{
		Text: "evt", State: StateRunning, Attempt: 5, Unanswered: 2, Deliveries: 7, Mark: MarkDoubt | 3*oneWord,
		Token: Token{7}, Version: next.Version, Lease: 2, RunsUntil: 7, Payload: Digest{1},
	}
	if !same(&next, &want) {
		t.Errorf("begun\n%+v, want\n%+v", next, want)
	}
	old.State = StateTombstone
	next = begun(&old, Item{Text: "evt"}, &ask, Token{7})
	want.Version, want.Unanswered, want.Mark = next.Version, 0, 3*oneWord
	if !same(&next, &want) {
		t.Errorf("begun over a tombstone\n%+v, want\n%+v", next, want)
	}
}

// same compares what begun sets.
func same(a, b *Record) bool {
	x, y := *a, *b
	return x.AnswerBody == nil && x.Request == nil && x.Tags == nil &&
		x.Text == y.Text && x.State == y.State && x.Attempt == y.Attempt && x.Unanswered == y.Unanswered &&
		x.Deliveries == y.Deliveries && x.Mark == y.Mark && x.Reason == y.Reason && x.Token == y.Token &&
		x.Version == y.Version && x.Lease == y.Lease && x.RunsUntil == y.RunsUntil && x.Payload == y.Payload && x.Retain == y.Retain
}

func TestInOrder(t *testing.T) {
	var items []Item
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		items = append(items, Item{Key: KeyOf("n", "s", id), Text: id})
	}
	asked := slices.Clone(items)
	ordered := (&Ask{Items: items}).inOrder()
	if !slices.IsSortedFunc(ordered, func(x, y Item) int { return bytes.Compare(x.Key.Digest[:], y.Key.Digest[:]) }) {
		t.Error("not in digest order")
	}
	if !slices.Equal(items, asked) {
		t.Error("the delivery's own order is lost")
	}
}

func TestMemory(t *testing.T) {
	record := func(id string, body int) *Record {
		return &Record{Key: KeyOf("n", "s", id), Text: id, State: StateDone, AnswerBody: make([]byte, body)}
	}
	t.Run("bounded in bytes, the oldest goes first", func(t *testing.T) {
		m := newMemory(10 << 10)
		for i := range 100 {
			m.put(record(string(rune('A'+i)), 1000), time.Now())
			if m.bytes > m.limit || len(m.known) > len(m.order) {
				t.Fatalf("%d bytes, %d known, %d in order", m.bytes, len(m.known), len(m.order))
			}
		}
		if _, ok := m.get(KeyOf("n", "s", "A")); ok {
			t.Error("the oldest is still known")
		}
		if _, ok := m.get(KeyOf("n", "s", string(rune('A'+99)))); !ok {
			t.Error("the newest is not known")
		}
	})
	t.Run("what is too large, or not done, or old already, is not kept", func(t *testing.T) {
		m := newMemory(1 << 10)
		m.put(record("a", 2000), time.Now())
		m.put(record("b", 0), time.Now().Add(-memoryLife))
		r := record("c", 0)
		r.State = StateReleased
		m.put(r, time.Now())
		if len(m.known) != 0 || m.bytes != 0 {
			t.Errorf("%d known, %d bytes", len(m.known), m.bytes)
		}
	})
	t.Run("the same claim again makes no room for itself twice", func(t *testing.T) {
		m := newMemory(1 << 20)
		at := time.Now()
		for range 100 {
			m.put(record("a", 100), at)
		}
		if len(m.order) != 1 {
			t.Errorf("%d in order", len(m.order))
		}
	})
	t.Run("no memory at all", func(t *testing.T) {
		m := newMemory(0)
		m.put(record("a", 0), time.Now())
		if len(m.known) != 0 {
			t.Error("kept all the same")
		}
	})
}
