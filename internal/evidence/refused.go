package evidence

import (
	"sync"
	"time"

	"oncegate/internal/telemetry"
)

// mostRefused bounds the samples of what was refused.
const mostRefused = 256

// A Refused is a sample of a delivery that left no trace in the store: it was
// refused, or forwarded without a claim. It holds nothing that its sender chose.
type Refused struct {
	At     time.Time `json:"at"`
	Route  string    `json:"route"`
	Result string    `json:"result"`
	Status int       `json:"status"`
	Remote string    `json:"remote,omitempty"`
	Error  string    `json:"error,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

// refused keeps the last samples.
type refused struct {
	mu   sync.Mutex // guards what follows
	ring []telemetry.Outcome
	next int
}

func (r *refused) note(o *telemetry.Outcome) {
	kept := telemetry.Outcome{
		At: o.At, Route: o.Route, Result: o.Result, Status: o.Status, Remote: o.Remote,
		Error: o.Error, Detail: telemetry.Cut(o.Detail),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) < mostRefused {
		r.ring = append(r.ring, kept)
		return
	}
	r.ring[r.next] = kept
	r.next = (r.next + 1) % mostRefused
}

// samples returns them, the newest first.
func (r *refused) samples() []Refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Refused, 0, len(r.ring))
	for i := len(r.ring) - 1; i >= 0; i-- {
		o := &r.ring[(r.next+i)%len(r.ring)]
		s := Refused{
			At: o.At.UTC(), Route: o.Route, Result: string(o.Result), Status: o.Status,
			Error: string(o.Error), Detail: o.Detail,
		}
		if o.Remote.IsValid() {
			s.Remote = o.Remote.String()
		}
		out = append(out, s)
	}
	return out
}
