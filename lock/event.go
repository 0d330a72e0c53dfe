package lock

import "time"

// An Event tells an observer what the claim protocol did beside the answer to
// a delivery.
type Event struct {
	Kind  EventKind
	Scope string        // empty for what concerns the store as a whole
	Took  time.Duration // of a trip
	// Testimony is a witness's, about the event that Key and Text name.
	Testimony Testimony
	Key       Key
	Text      string
	N         int   // changes or keys in a trip, or how many it concerns
	Err       error // of what failed; nil where that was told otherwise
}

// An EventKind says what happened.
type EventKind uint8

const (
	EventRenewed       EventKind = iota // a lease was renewed
	EventFenced                         // a write of an attempt found another's claim
	EventLapsed                         // a running claim was found without a lease
	EventSecondRun                      // an attempt began after one that ended unknown
	EventLate                           // a 2xx was written as done after its attempt was fenced
	EventOwed                           // a settle or an undo could not be written in time
	EventPaid                           // what was owed is written, or settled otherwise
	EventMemoryHit                      // a replay needed no store
	EventWriteTrip                      // a round trip that writes
	EventReadTrip                       // a round trip that reads
	EventStoreError                     // a round trip that failed
	EventSwept                          // the sweep wrote N lapsed claims as unknown
	EventPurged                         // N records past retention were removed, as far as Err allowed; none, where there was none
	EventBackgroundErr                  // sweep or purge failed
	EventWitness                        // a witness was asked, and gave its Testimony, or Err
	EventJournalError                   // N owed writes could not be kept on disk: memory alone has them
)
