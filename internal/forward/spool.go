package forward

import (
	"fmt"
	"io"
)

// A Room bounds what many exchanges hold in memory together. It is safe for
// concurrent use.
type Room interface {
	// Take takes n more bytes, if there are so many.
	Take(n int64) bool
	// GiveBack gives back n bytes that were taken.
	GiveBack(n int64)
}

// firstSpool is what is taken at first for a body that is read ahead; then each
// time as much as it has.
const firstSpool = 8 << 10

// readAhead reads a body of unknown length into memory. What it takes of the room
// is o's to give back.
func (cl *client) readAhead(o *outgoing) error {
	body := o.stream.body
	o.stream = nil
	defer body.Close()
	var whole []byte
	for {
		if len(whole) == cap(whole) {
			size := min(max(2*int64(cap(whole)), firstSpool), cl.spool+1)
			if size == int64(cap(whole)) {
				return ErrLengthRequired
			}
			if more := size - int64(cap(whole)); cl.room != nil {
				if !cl.room.Take(more) {
					return ErrNoRoom
				}
				o.spooled += more
			}
			whole = append(make([]byte, 0, size), whole...)
		}
		n, err := body.Read(whole[len(whole):cap(whole)])
		whole = whole[:len(whole)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRequestBody, err)
		}
	}
	if int64(len(whole)) > cl.spool {
		return ErrLengthRequired
	}
	o.whole, o.length = whole, int64(len(whole))
	return nil
}

func (cl *client) giveBack(o *outgoing) {
	if o.spooled > 0 {
		cl.room.GiveBack(o.spooled)
	}
}
