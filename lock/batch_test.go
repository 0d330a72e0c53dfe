package lock_test

import (
	"fmt"
	"strings"
	"testing"

	"oncegate/lock"
)

// What the events of a batch keep of its answer is bounded, all together.
func TestBatchAnswer(t *testing.T) {
	ids := func(n int) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprint("evt_", n-i)) // in another order than their digests
		}
		return ids
	}
	answer := func(body string) lock.Ending {
		e := done(body)
		e.Answer.Header = []lock.Line{{Name: "Content-Type", Value: "text/html"}}
		return e
	}
	kept := func(r *rig, ids []string) (whole int) {
		for _, id := range ids {
			rec := r.record(id)
			a, err := rec.StoredAnswer()
			if err != nil || rec.State != lock.StateDone || a.Status != 200 || len(a.Header) != 1 || a.Stub != (len(a.Body) == 0) {
				t.Fatalf("%s is %s, %v, %+v", id, rec.State, err, a)
			}
			if !a.Stub {
				whole++
			}
		}
		return whole
	}
	large := strings.Repeat("y", 256<<10)
	for _, c := range []struct {
		name, body   string
		items, whole int
	}{
		{"B41 each keeps a small answer", "ok", 1000, 1000},
		{"B41 each keeps a large answer, as long as there are few", large, 64, 64},
		{"B41 of many, the first alone keeps a large answer", large, 65, 1},
	} {
		bubble(t, c.name, func(t *testing.T, r *rig) {
			g, all := r.gate(), ids(c.items)
			if got := r.run(g, ask(all...)).Settle(answer(c.body)); got != lock.SettleStands {
				t.Fatalf("settled: %d", got)
			}
			if n := kept(r, all); n != c.whole {
				t.Errorf("%d keep all of it", n)
			}
			if d := r.begin(g, ask(all...), lock.Replay); string(d.Answer.Body) != c.body {
				t.Errorf("replayed %d bytes", len(d.Answer.Body))
			}
		})
	}
}
