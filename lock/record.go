package lock

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// A Digest is a SHA-256 sum: of an event key's text, where it is the indexed
// key of a record, or of a delivery's payload.
type Digest [sha256.Size]byte

// String returns the digest in lower-case hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText returns the digest in hex.
func (d Digest) MarshalText() ([]byte, error) { return marshalHex(d[:]) }

// UnmarshalText takes what MarshalText returned.
func (d *Digest) UnmarshalText(text []byte) error { return unmarshalHex(d[:], text) }

func marshalHex(b []byte) ([]byte, error) { return hex.AppendEncode(nil, b), nil }

func unmarshalHex(into, text []byte) error {
	if len(text) != hex.EncodedLen(len(into)) {
		return hex.ErrLength
	}
	_, err := hex.Decode(into, text)
	return err
}

// A Token says whose claim a record is: a random value, one per attempt, made
// before the first write.
type Token [16]byte

// NewToken returns a random token.
func NewToken() (t Token) {
	rand.Read(t[:])
	return t
}

// MarshalText returns the token in hex.
func (t Token) MarshalText() ([]byte, error) { return marshalHex(t[:]) }

// UnmarshalText takes what MarshalText returned.
func (t *Token) UnmarshalText(text []byte) error { return unmarshalHex(t[:], text) }

// A Version names one write of a record: a random value, new for every write.
// A change names the version it expects, and nothing else is compared. The
// zero Version, None, expects that there is no record.
type Version [16]byte

// None is the version of a record that does not exist.
var None Version

// NewVersion returns a random version.
func NewVersion() (v Version) {
	rand.Read(v[:])
	return v
}

// MarshalText returns the version in hex.
func (v Version) MarshalText() ([]byte, error) { return marshalHex(v[:]) }

// UnmarshalText takes what MarshalText returned.
func (v *Version) UnmarshalText(text []byte) error { return unmarshalHex(v[:], text) }

// A Key addresses one record.
type Key struct {
	// Namespace says which apps share claims. At most 64 bytes of visible ASCII.
	Namespace string
	// Scope is the route's name, or what the route calls its scope. At most
	// 128 bytes of visible ASCII.
	Scope string
	// Digest is the SHA-256 of the event key's text.
	Digest Digest
}

// KeyOf returns the key under which the event with this key text is claimed.
func KeyOf(namespace, scope, text string) Key {
	return Key{Namespace: namespace, Scope: scope, Digest: sha256.Sum256([]byte(text))}
}

// A Role says what a record stands for.
type Role uint8

const (
	// RoleEvent is the claim on one event.
	RoleEvent Role = iota
	// RoleAlias is a second key of an event; it has no state and names the
	// event's digest.
	RoleAlias
	// RoleTurn is a turn on an object that several events change.
	RoleTurn
	// RoleDuty is a piece of background work that one replica does at a time.
	RoleDuty
)

// A State is where a claim stands. The zero State is that of a record without
// one: an alias, or no record at all.
type State uint8

const (
	// StateNone is the state of an alias and of an absent record.
	StateNone State = iota
	// StateRunning: an attempt holds the claim under a lease.
	StateRunning
	// StateDone: the app answered 2xx (or a witness or an operator said so)
	// and the answer is stored.
	StateDone
	// StateReleased: the last attempt did nothing that counts; the next
	// delivery makes another.
	StateReleased
	// StateUnknown: an attempt may have taken effect and has no 2xx.
	StateUnknown
	// StateTombstone: an operator forgot the event; digest and attempt number
	// remain.
	StateTombstone
)

// A Mark is a set of facts about how a record came to its state.
type Mark uint8

const (
	// MarkLate: done was written by an attempt that had been fenced before its
	// 2xx arrived.
	MarkLate Mark = 1 << iota
	// MarkOperator: an operator wrote the record's state.
	MarkOperator
	// MarkWitness: a witness's answer wrote the record's state.
	MarkWitness
	// MarkAcknowledged: the sender was answered before the app was (inbox).
	MarkAcknowledged
	// MarkDoubt: an attempt of this claim ended unknown at some time, so that
	// every later one is a possible second run.
	MarkDoubt
)

// The three highest bits of a Mark count, modulo eight, how often an operator
// has spoken about the claim's effect. They go with it from attempt to attempt, so that
// an attempt knows whether an operator has spoken since it began.
const (
	markWords Mark = 7 << 5
	oneWord   Mark = 1 << 5
)

// spoken is the mark of a record that an operator writes next.
func (m Mark) spoken() Mark {
	return m&^(markWords|MarkLate|MarkWitness) | (m+oneWord)&markWords | MarkOperator
}

// A Record is what a store keeps under a Key, and what the next change wants
// it to be. Moments are durations: in a record handed to a store they count
// from the moment of the write; in a record that came from a store they say
// what is left (negative: how long it has been over), by the store's clock.
type Record struct {
	Key
	// Text is the event key: visible ASCII, at most MaxKeyText bytes.
	Text string
	Role Role
	// Names is, on an alias, the digest of the event key it stands for.
	Names  Digest
	State  State
	Mark   Mark
	Reason string // why the record is in its state; one of the Reason constants
	// Attempt numbers the attempts from 1. A number may be spent on an attempt
	// that sent nothing.
	Attempt int
	// Unanswered counts the attempts that ended unknown without an answer of
	// the app's own: time-outs, broken connections, lapses, 502 and 504.
	Unanswered int
	Token      Token
	Version    Version
	// Lease is how long a running claim may go without renewal.
	Lease time.Duration
	// RunsUntil bounds how long the app may still be working on the attempt.
	RunsUntil time.Duration
	// Retain is how long the record is kept, from its last write; a read
	// record has what is left of it. Zero means for ever, and running and
	// unknown records always are kept.
	Retain time.Duration
	// Due and Group order the work of an inbox; both are zero elsewhere.
	Due   time.Duration
	Group string
	// FirstSeen and LastSeen are ages: how long ago the first and the last
	// delivery moved the record; Written is the age of its last write. The
	// store keeps all three, and ignores them in a change.
	FirstSeen, LastSeen, Written time.Duration
	// Deliveries counts the deliveries that moved the record. In a change it
	// is what the record will hold.
	Deliveries int
	// AnswerStatus, AnswerHeader and AnswerBody are the stored answer; the
	// last two are sealed (see Seal), and opaque to a store.
	AnswerStatus             int
	AnswerHeader, AnswerBody []byte
	// Request is the kept request, sealed; nil where none is kept.
	Request []byte
	// Payload is the SHA-256 of the delivery's body (with method and target
	// where the route says so).
	Payload Digest
	// Tags are what an operator can search by: sorted "name=value" strings.
	Tags []string
}

// MaxKeyText bounds an event key's text, in bytes.
const MaxKeyText = 16 << 10

// Exists reports whether there is a record at all.
func (r *Record) Exists() bool { return r.Version != None }

// Expires reports whether the record is of a kind that retention removes.
func (r *Record) Expires() bool {
	switch r.State {
	case StateRunning, StateUnknown:
		return false
	}
	return r.Retain > 0
}

// Why a record is in its state.
const (
	ReasonAnswered  = "answered"  // the app's answer decided
	ReasonUnsent    = "unsent"    // nothing was sent
	ReasonBroken    = "broken"    // the connection broke after the first byte
	ReasonTimeout   = "timeout"   // no complete answer within the upstream timeout
	ReasonLapsed    = "lapsed"    // the lease ran out
	ReasonShutdown  = "shutdown"  // the drain deadline cut the attempt
	ReasonGivenUp   = "given up"  // a begin whose reply never came was undone
	ReasonYielded   = "yielded"   // a set of claims could not be had together
	ReasonWitness   = "witness"   // a witness said yes or no
	ReasonOperator  = "operator"  // an operator decided
	ReasonOversized = "oversized" // done, answer kept as a stub
	ReasonUpgraded  = "upgraded"  // the app answered 101
	ReasonCut       = "cut"       // an operator cut a hung attempt
	ReasonDuty      = "duty"      // a background duty was laid down
)

// String returns the state's word, as operators see it.
func (s State) String() string {
	switch s {
	case StateNone:
		return "none"
	case StateRunning:
		return "running"
	case StateDone:
		return "done"
	case StateReleased:
		return "released"
	case StateUnknown:
		return "unknown"
	case StateTombstone:
		return "tombstone"
	}
	return "invalid"
}
