package locktest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"oncegate/lock"
)

var linearCases = []testCase{
	{"random histories", func(p *place) { p.histories(nil) }},
	{"random histories with lost replies and late writes", func(p *place) {
		p.histories(func(s Store, seed uint64) lock.Store { return NewFlaky(s, Seeded(seed, 0.2)) })
	}},
}

// An asked is one operation of a history, on one key: a read, or a change.
type asked struct {
	key          int
	change       bool
	expect, next lock.Version
}

// A told is what came of it: what stands, unless nobody knows.
type told struct {
	unknown bool
	stands  lock.Version
}

// register is the model: one version per key. An operation whose outcome is
// unknown fits at any moment from its call on, the end of time included, which
// is as good as never.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[int][]porcupine.Operation{}
		for _, op := range history {
			k := op.Input.(asked).key
			parts[k] = append(parts[k], op)
		}
		var all [][]porcupine.Operation
		for _, ops := range parts {
			all = append(all, ops)
		}
		return all
	},
	Init: func() any { return lock.None },
	Step: func(state, input, output any) (bool, any) {
		stands, in, out := state.(lock.Version), input.(asked), output.(told)
		if in.change && stands == in.expect {
			stands = in.next
		}
		return out.unknown || out.stands == stands, stands
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string {
		in, out := input.(asked), output.(told)
		return fmt.Sprintf("key %d: %x to %x, now %x (unknown %v)", in.key, in.expect[:2], in.next[:2], out.stands[:2], out.unknown)
	},
}

// histories runs clients against two openings of the place, each through wrap,
// and checks that what they were told fits one order.
func (p *place) histories(wrap func(Store, uint64) lock.Store) {
	stores := []lock.Store{p.s, p.another().s}
	if wrap != nil {
		for i, s := range stores {
			stores[i] = wrap(s.(Store), uint64(i))
		}
	}
	for round := range 4 {
		h := &history{start: time.Now(), round: round}
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() { h.client(p, stores[i%2], uint64(round*100+i)) })
		}
		wg.Wait()
		switch result, _ := porcupine.CheckOperationsVerbose(register, h.ops, time.Minute); result {
		case porcupine.Illegal:
			p.Fatalf("no order of %d operations explains what was told", len(h.ops))
		case porcupine.Unknown:
			p.Fatalf("%d operations could not be checked in time", len(h.ops))
		}
	}
}

// A history gathers what clients asked and were told.
type history struct {
	start time.Time
	round int
	mu    sync.Mutex // guards ops
	ops   []porcupine.Operation
}

// client asks at random: about few keys, from what it saw last, sometimes
// sending an old change again, sometimes several in one batch.
func (h *history) client(p *place, s lock.Store, seed uint64) {
	random := rand.New(rand.NewPCG(seed, seed))
	seen := map[int]lock.Version{}
	var old []lock.Change
	for range 40 {
		k := random.IntN(3)
		if random.IntN(3) == 0 {
			seen[k] = h.read(p, s, k, int(seed))
			continue
		}
		batch := []lock.Change{h.change(k, seen[k])}
		if other := (k + 1) % 3; random.IntN(2) == 0 {
			batch = append(batch, h.change(other, seen[other]))
		}
		if len(old) > 0 && random.IntN(5) == 0 {
			batch = []lock.Change{old[random.IntN(len(old))]}
		}
		old = append(old, batch...)
		for k, v := range h.apply(p, s, batch, int(seed)) {
			seen[k] = v
		}
	}
}

func (h *history) key(k int) lock.Key {
	return lock.KeyOf("suite", fmt.Sprint("k", k), fmt.Sprint(h.round))
}

func (h *history) change(k int, expect lock.Version) lock.Change {
	c := begin("e")
	c.Next.Key = h.key(k)
	c.Expect = expect
	return c
}

func (h *history) read(p *place, s lock.Store, k, client int) lock.Version {
	called := time.Since(h.start)
	records, err := s.Read(p.Context(), []lock.Key{h.key(k)})
	if err != nil {
		return lock.None // a read without an answer says nothing
	}
	h.add(client, asked{key: k}, told{stands: records[0].Version}, called)
	return records[0].Version
}

// apply sends the batch and returns what it learned.
func (h *history) apply(p *place, s lock.Store, batch []lock.Change, client int) map[int]lock.Version {
	called := time.Since(h.start)
	results, err := s.Apply(p.Context(), batch)
	learned := map[int]lock.Version{}
	for i := range batch {
		in := asked{change: true, expect: batch[i].Expect, next: batch[i].Next.Version}
		for in.key = 0; h.key(in.key) != batch[i].Next.Key; in.key++ {
		}
		out := told{unknown: true}
		if err == nil && results[i].Err == nil {
			out = told{stands: results[i].Standing.Version}
			learned[in.key] = out.stands
		}
		h.add(client, in, out, called)
	}
	return learned
}

func (h *history) add(client int, in asked, out told, called time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	op := porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(called), Return: int64(time.Since(h.start))}
	if out.unknown {
		op.ClientId, op.Return = 1000+len(h.ops), math.MaxInt64 // its client goes on meanwhile
	}
	h.ops = append(h.ops, op)
}
