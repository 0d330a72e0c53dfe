// Package shop is the careless little web shop of `oncegate demo`.
//
// It does what many shops do with a Stripe webhook: it checks the signature,
// charges the customer, enrols them in the course, and answers 200. It takes
// care of nothing else: an event that comes twice is charged twice, an answer
// that is lost is work done again. With oncegate in front of it, neither
// happens, and the shop stays as it is.
//
// The signature check is the shop's own and shares nothing with oncegate's, so
// that a delivery which arrives with one byte changed is refused here.
//
// [Shop.Effects] tells what has been done for each event: the independent ledger
// by which the demo is judged.
package shop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// An Effect is what the shop did for one event.
type Effect struct {
	Event string
	// Runs counts how often the handler ran for it; Charges and Enrolments what
	// the customer got. In a careful shop all three are 1.
	Runs, Charges, Enrolments int
}

// Bounds of the demo's shop: it keeps everything in memory.
const (
	maxBody   = 1 << 20
	maxEvents = 10_000
)

// A Shop is a web app with one webhook. It is an http.Handler.
type Shop struct {
	secret string
	work   time.Duration

	mu      sync.Mutex // guards what follows
	effects map[string]*Effect
	order   []string // of first runs
	charges int
	refused int
}

// New returns a shop that trusts deliveries signed with secret and takes work
// over each, as an app does that talks to a database and a mail server.
func New(secret string, work time.Duration) *Shop {
	return &Shop{secret: secret, work: work, effects: map[string]*Effect{}}
}

// Effects returns what was done for each event, in the order of their first runs.
func (s *Shop) Effects() []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Effect, len(s.order))
	for i, event := range s.order {
		all[i] = *s.effects[event]
	}
	return all
}

// Refused returns how many deliveries had no valid signature.
func (s *Shop) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// ServeHTTP answers the webhook, and a front page that shows what was done.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/stripe/webhook" && r.Method == http.MethodPost:
		s.webhook(w, r)
	case r.URL.Path == "/" && r.Method == http.MethodGet:
		s.front(w)
	default:
		http.NotFound(w, r)
	}
}

func (s *Shop) webhook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "body unreadable", http.StatusBadRequest)
		return
	}
	if err := check(r.Header.Get("Stripe-Signature"), body, s.secret, time.Now()); err != nil {
		s.mu.Lock()
		s.refused++
		s.mu.Unlock()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var event struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &event); err != nil || event.ID == "" {
		http.Error(w, "no event", http.StatusBadRequest)
		return
	}
	charge, ok := s.charge(event.ID)
	if !ok {
		http.Error(w, "the demo's shop keeps no more events; start it anew", http.StatusInsufficientStorage)
		return
	}
	// Like PHP, the shop works on when the sender has hung up.
	time.Sleep(s.work)
	s.enrol(event.ID)
	answer, err := json.Marshal(map[string]string{"received": event.ID, "charge": fmt.Sprintf("ch_%d", charge)})
	if err != nil {
		http.Error(w, "no answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// To whom it can't be written any more, the shop owes nothing: what was
	// done is done.
	_, _ = w.Write(answer)
}

// charge takes the customer's money and returns the charge's number, new for
// every run: so a second run can be told by its answer.
func (s *Shop) charge(event string) (number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.effects[event]
	if e == nil {
		if len(s.order) == maxEvents {
			return 0, false
		}
		e = &Effect{Event: event}
		s.effects[event] = e
		s.order = append(s.order, event)
	}
	s.charges++
	e.Runs++
	e.Charges++
	return s.charges, true
}

func (s *Shop) enrol(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effects[event].Enrolments++
}

// front lists the last events.
func (s *Shop) front(w http.ResponseWriter) {
	effects := s.Effects()
	var page strings.Builder
	fmt.Fprintf(&page, "The careless shop. Events: %d.\n\n%-40s %8s %8s\n", len(effects), "event", "charged", "enrolled")
	for _, e := range effects[max(0, len(effects)-50):] {
		fmt.Fprintf(&page, "%-40.40q %8d %8d\n", e.Event, e.Charges, e.Enrolments)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, page.String())
}
