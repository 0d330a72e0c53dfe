package proxy

import (
	"sync"
	"time"

	"oncegate/lock"
)

// maxSeen bounds the memory of observed events.
const maxSeen = 1 << 16

// seen remembers when observed events were seen first: the last maxSeen of
// them. It is safe for concurrent use.
type seen struct {
	mu    sync.Mutex // guards what follows
	first map[lock.Key]time.Time
	order []lock.Key // a ring
	next  int
}

// note remembers an event. It reports how long ago it was first seen, if it was.
func (s *seen) note(k lock.Key) (age time.Duration, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.first[k]; ok {
		return time.Since(first), true
	}
	if s.first == nil {
		s.first = make(map[lock.Key]time.Time)
	}
	if len(s.order) < maxSeen {
		s.order = append(s.order, k)
	} else {
		delete(s.first, s.order[s.next])
		s.order[s.next] = k
		s.next = (s.next + 1) % maxSeen
	}
	s.first[k] = time.Now()
	return 0, false
}
