package lock

import (
	"context"
	"errors"
	"time"
)

// A Store is a compare-and-set register: one verb that writes and one that
// reads.
//
// # Consistency
//
// Changes to one key are linearizable. Reads see every change whose Apply
// returned before the read began. Nothing is promised across keys: a batch is a
// transport, not a transaction.
//
// # Durability
//
// A change that was applied survives what the store's documentation says it
// survives; for the strict stores, the loss of the process and of the power.
//
// # Time
//
// Only durations cross this seam. The store's own clock turns them into moments
// and judges them.
//
// # Errors
//
// An error, of the call or of one Result, means "not known whether applied".
// The same change may be sent again, however late: where its Next.Version
// stands already, nothing changes. A store retries at most once, on a new
// connection, and only where its own protocol lost the connection; all other
// retrying is the caller's. A store translates its library's errors so that
// errors.Is finds ErrUnavailable or ErrUnfit where they hold.
//
// # Concurrency and ownership
//
// All methods may be called concurrently. The store does not keep or change
// the slices it is given, and the caller owns those it gets.
type Store interface {
	// Apply makes each change whose expectation holds, and says for each what
	// stands afterwards, in the order given. No key occurs twice in a batch.
	Apply(ctx context.Context, batch []Change) ([]Result, error)

	// Read returns what stands under each key, in the order given; a zero
	// Record where nothing does. A record past its retention is not there.
	Read(ctx context.Context, keys []Key) ([]Record, error)

	// Close releases what the store holds. It waits for calls under way.
	Close() error
}

// A Change asks that a record become Next, if it stands at version Expect.
//
// Expect None holds where there is no record, or one past its retention (which
// only done, released, alias and tombstone records ever are). The key is
// Next.Key; Next.Version is new and not None.
//
// Of Next the store takes every field but FirstSeen, LastSeen and Written,
// which it keeps itself: FirstSeen is set where Expect is None and kept
// otherwise; LastSeen is set where Seen is true or Expect is None, and kept
// otherwise; Written is always set. Retain is kept where Next.Expires, and
// reads as zero otherwise. Due is kept to the microsecond, but zero means none:
// what is due at once says one nanosecond.
//
// A record past its retention is not there, so a change that expects its
// version is refused and finds the zero Record standing.
type Change struct {
	Expect Version
	Next   Record
	// Seen says that a delivery caused this change.
	Seen bool
}

// A Result is what stands after a change. Where the change was applied, now or
// before, Standing.Version is its Next.Version.
type Result struct {
	Standing Record
	Err      error
}

// Applied reports whether c is what stands.
func (r Result) Applied(c Change) bool {
	return r.Err == nil && r.Standing.Version == c.Next.Version
}

var (
	// ErrUnavailable says that the store could not be reached or did not
	// answer in time.
	ErrUnavailable = errors.New("store out of reach")
	// ErrUnfit says that the store answers but would break its promise: it
	// evicts, does not persist, is read-only, lacks a table.
	ErrUnfit = errors.New("store unfit")
)

// A Catalog is the other half of a store: what operators and background work
// read, and the removal of what is past retention. Every store has one; it is
// apart from Store so that the claim protocol can't come to depend on it.
type Catalog interface {
	// List returns up to limit records that match, ordered by (scope, digest),
	// those after the cursor only; the zero cursor starts. Expired records are
	// left out. The returned records may lack AnswerBody and Request.
	List(ctx context.Context, f Filter, after Cursor, limit int) ([]Record, error)
	// Count returns how many records of the namespace there are. In a large store
	// it reads much and takes long: it is for people, and for background work
	// that rests in between. While others write it may be off by what they wrote.
	Count(ctx context.Context, namespace string) (Counts, error)
	// Purge makes one short step of a purge: it removes up to limit records of
	// the namespace that are past their retention, or looks at about as many that
	// may be. Steps until there is no more remove all that there was; see PurgeAll.
	Purge(ctx context.Context, namespace string, limit int) (Purged, error)
}

// A Cursor is a place in a listing.
type Cursor struct {
	Scope  string
	Digest Digest
}

// ScopeState is what figures are counted by.
type ScopeState struct {
	Scope string
	State State
}

// Counts are how many records a namespace has.
type Counts struct {
	// Claims counts those within their retention.
	Claims map[ScopeState]int
	// Over is how many are past their retention and were not removed yet. Where
	// the server removes them by itself it is 0.
	Over int
}

// Add adds records of one kind: those within their retention, and those past it.
func (c *Counts) Add(k ScopeState, within, over int) {
	if within > 0 {
		c.Claims[k] += within
	}
	c.Over += over
}

// A Filter selects records; zero fields select all.
type Filter struct {
	Namespace string // required
	Scope     string
	State     State
	Role      Role
	// TextPart selects records whose key text contains it, byte for byte.
	TextPart string
	// Tag selects records that carry this "name=value".
	Tag string
	// LeaseOver selects running records whose lease has run out.
	LeaseOver bool
	// RunsOver selects records whose app can't be running any more.
	RunsOver bool
	// SeenWithin and NotSeenFor bound the age of the last delivery.
	SeenWithin, NotSeenFor time.Duration
}

// A Watcher is a store that can tell of changes made by others, so that waiters
// need not poll. It is a hint: it may lose some, and it may end.
type Watcher interface {
	// Watch sends the digest of each record that came to rest (done, released,
	// unknown) until ctx is over or the connection is lost, and returns why it
	// ended.
	Watch(ctx context.Context, rested func(Digest)) error
}

// A Checker is a store that can examine its own server's promise.
type Checker interface {
	// Check returns what is weak or unfit, each with the name by which
	// accept_weak lets it pass. An error means that nothing could be learned.
	Check(ctx context.Context) ([]Weakness, error)
}

// A Weakness is one way in which a store's server would break its promise.
type Weakness struct {
	Name   string // eviction, persistence, fsync, ...
	Detail string // what was found and what to change, for a person
	// Unknown says that the server did not let itself be asked.
	Unknown bool
}
