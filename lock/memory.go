package lock

import (
	"sync"
	"time"
)

// How long a done claim is believed after it was read: operators' verbs return
// only after that, so that no process replays what was reopened.
const memoryLife = 2 * time.Second

// memory remembers done claims for a moment, so that a storm of duplicates
// costs the store nothing. It is bounded in bytes; all entries live equally
// long, so the one put in first goes first.
type memory struct {
	limit int64

	mu    sync.Mutex // guards what follows
	known map[Key]remembered
	order []remembered
	bytes int64
}

type remembered struct {
	rec *Record
	at  time.Time
}

func newMemory(limit int64) *memory {
	return &memory{limit: limit, known: make(map[Key]remembered)}
}

func weight(r *Record) int64 {
	return int64(256 + len(r.Text) + len(r.AnswerHeader) + len(r.AnswerBody))
}

// put remembers a done record. It is as old as the question that it answers: at
// is when that was sent.
func (m *memory) put(r *Record, at time.Time) {
	w := weight(r)
	if r.State != StateDone || w > m.limit || time.Since(at) >= memoryLife {
		return
	}
	kept := *r
	kept.Request = nil
	e := remembered{rec: &kept, at: at}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.known[r.Key]; ok && !known.at.Before(at) {
		return
	}
	m.bytes += w
	m.order = append(m.order, e)
	m.known[r.Key] = e
	for len(m.order) > 0 && (m.bytes > m.limit || time.Since(m.order[0].at) >= memoryLife) {
		old := m.order[0]
		m.order = m.order[1:]
		m.bytes -= weight(old.rec)
		if m.known[old.rec.Key] == old {
			delete(m.known, old.rec.Key)
		}
	}
}

// get returns a done record that is still believed.
func (m *memory) get(k Key) (*Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.known[k]
	if !ok || time.Since(e.at) >= memoryLife {
		return nil, false
	}
	return e.rec, true
}

// remembered answers a delivery from memory, if all its events are there.
func (g *Gate) remembered(ask *Ask) (Decision, bool) {
	var first *Record
	for _, it := range ask.Items {
		r, ok := g.memory.get(it.Key)
		if !ok {
			return Decision{}, false
		}
		if first == nil {
			first = r
		}
	}
	g.observe(Event{Kind: EventMemoryHit, Scope: first.Scope})
	d := replayOf(first)
	d.Differs = ask.differs(first)
	if ask.mismatch(first) {
		d = Decision{Verdict: Mismatch, Record: *first, Differs: true}
	}
	return d, true
}
