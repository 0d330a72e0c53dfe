// Package evidence keeps what happened to each event: a record for each
// delivery that had an event key, and one for each decision of an operator.
//
//	recorder := evidence.NewRecorder(evidence.Options{Namespace: "shop", Store: store, Log: log})
//	defer recorder.Close(ctx)
//	recorder.Record(&outcome)            // from the one sink of all outcomes
//	entries, err := store.Find(ctx, evidence.Query{Namespace: "shop", Key: key})
//
// # Beside the way, never in it
//
// Record puts an outcome into memory and returns. A goroutine writes what has
// gathered, a group at a time, once a second. So a replay is as fast with
// evidence as without, and a store that is out costs nothing but evidence.
//
// # Bounded
//
// Deliveries of one event that are alike (same result, status, attempt and
// sender) share an entry, which counts them: a storm of a million duplicates is
// one row that is written anew once a second. Entries in memory are bounded in
// number and bytes. What does not fit is not written; Dropped counts it.
//
// # What is not evidence
//
// A delivery that was refused before it had an event key could be anybody's. It
// leaves no trace in any store: it is counted, and the last few are kept in
// memory (Refused). One of an observed route is evidence where it has an event
// key that enforcing would have taken; what nothing proves there is written at
// most mostUnproven times a minute, for a stranger could fill the store with it.
//
// # What an entry holds
//
// Of the request no body, no header but those that say which try this is, no
// credential. Of the app's answer to an attempt its status, the headers that a
// claim keeps, and, where the route lets it be kept, the first of its body. The
// sender's address, and an operator's name and reason, are personal data: they
// go with the entry's retention, and with Forget. Where there is a key, all of
// it but what one selects and counts by is encrypted in the store (Facts).
package evidence

import (
	"context"
	"time"

	"oncegate/internal/telemetry"
	"oncegate/lock"
)

// A Kind says what an entry is about.
type Kind uint8

const (
	// KindDelivery: one delivery, or several that are alike.
	KindDelivery Kind = iota
	// KindDecision: what an operator decided. Result is the verb.
	KindDecision
	// KindWitness: what a witness said when it was asked. Result is its word.
	KindWitness
)

// An ID names an entry: a random value. Writing an entry whose ID is there
// already replaces it, so that every write may be repeated.
type ID [16]byte

// An Entry is what is known of one delivery, or of Count that are alike.
type Entry struct {
	ID  ID
	Key lock.Key
	// First and Last are when the first and the last of them arrived, by the
	// clock of the host that took them; kept to the microsecond.
	First, Last time.Time
	Count       int
	Kind        Kind
	Route       string
	Provider    string
	Result      string
	Status      int // 0: nobody was left to answer
	// Duplicates says that the event had been seen before; Late that this was
	// longer ago than LateAfter.
	Duplicate, Late bool
	Facts
}

// Facts are what an entry says besides. All of it may be zero. A store encrypts
// them where it was given a key.
type Facts struct {
	Text    string `json:"key,omitempty"` // the event key
	Attempt int    `json:"attempt,omitempty"`
	// AppStatus is what the app answered to an attempt.
	AppStatus int `json:"app_status,omitempty"`
	// Answer is the rest of that answer, as far as it may be kept.
	Answer    *Answer `json:"answer,omitempty"`
	SecondRun bool    `json:"second_run,omitempty"`
	Differs   bool    `json:"differs,omitempty"`
	Stub      bool    `json:"stub,omitempty"`
	// The longest of those that are alike, in microseconds.
	Total    int64 `json:"total_us,omitempty"`
	Waited   int64 `json:"waited_us,omitempty"`
	Upstream int64 `json:"upstream_us,omitempty"`
	// Remote is the sender's address, behind trusted proxies; Retry is what the
	// sender's own headers say of which try this is.
	Remote string `json:"remote,omitempty"`
	Retry  string `json:"retry,omitempty"`
	// Payload is the digest of the first one's body, in hex.
	Payload string `json:"payload,omitempty"`
	Error   string `json:"error,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Who decided, and why; State is what the claim became.
	Who   string `json:"who,omitempty"`
	Why   string `json:"why,omitempty"`
	State string `json:"state,omitempty"`
	// Sealed says that these can't be read, since they are stored under a key that
	// is not there, or damaged; all else is missing.
	Sealed bool `json:"sealed,omitempty"`
}

// An Answer is what is kept of the app's answer to one attempt.
type Answer struct {
	// Header are the lines that a claim would keep.
	Header []Line `json:"header,omitempty"`
	// Size is how many bytes its body had; where it was too large to be kept, how
	// many were read of it.
	Size int `json:"size"`
	// Kept is how many of them are kept, Body these.
	Kept int    `json:"kept,omitempty"`
	Body []byte `json:"body,omitempty"`
}

// A Line is one header line.
type Line struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// answerOf is what an outcome says of the app's answer; nil where there was none.
func answerOf(o *telemetry.Outcome) *Answer {
	if o.AppAnswer == nil {
		return nil
	}
	a := &Answer{Size: o.AppSize, Kept: len(o.AppAnswer.Body), Body: o.AppAnswer.Body}
	for _, l := range o.AppAnswer.Header {
		a.Header = append(a.Header, Line(l))
	}
	return a
}

// size is how many bytes it takes in memory.
func (a *Answer) size() int {
	if a == nil {
		return 0
	}
	n := len(a.Body)
	for _, l := range a.Header {
		n += len(l.Name) + len(l.Value)
	}
	return n
}

// LateAfter is how long after an event's first delivery a duplicate is late: by
// then, what remembers events for minutes has forgotten them.
const LateAfter = 5 * time.Minute

// A Store keeps entries. Its clock is that of those who write.
//
// An error means "not known whether written"; the same call may be repeated. It
// is a lock.ErrUnavailable where the store is out of reach. All methods may be
// called concurrently; slices stay their owner's.
type Store interface {
	// Write adds entries, or replaces those whose ID is there.
	Write(ctx context.Context, entries []Entry) error
	// Find returns up to q.Limit entries, the newest of them, in the order in
	// which they began.
	Find(ctx context.Context, q Query) ([]Entry, error)
	// Figures sums up the deliveries that came since.
	Figures(ctx context.Context, namespace string, since time.Time) ([]Figure, error)
	// Forget removes all entries about a key.
	Forget(ctx context.Context, key lock.Key) error
	// Purge removes up to limit entries whose last delivery came before, and
	// says how many it removed.
	Purge(ctx context.Context, namespace string, before time.Time, limit int) (int, error)
	Close() error
}

// A Query selects entries; zero fields select all.
type Query struct {
	Namespace string // required
	Scope     string
	Digest    lock.Digest
	Result    string
	Since     time.Time
	Limit     int // required
}

// A Figure counts the deliveries of a route that ended with one result.
type Figure struct {
	Route, Provider, Result string
	Deliveries              int
	Duplicates, Late        int
}
