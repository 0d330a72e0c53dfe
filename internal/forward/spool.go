package forward

import (
	"bytes"
	"errors"
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

// readAhead reads a body into memory. What it takes of the room is o's to give
// back. Without room for more of it, one of known length is streamed after all.
func (cl *client) readAhead(o *outgoing) error {
	body, length := o.stream.body, o.length
	whole, err := cl.readWhole(o, body)
	if errors.Is(err, ErrNoRoom) && length >= 0 {
		o.stream.body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(whole), body), body}
		return nil
	}
	o.stream = nil
	defer body.Close()
	if err != nil {
		return err
	}
	if length >= 0 && int64(len(whole)) != length {
		return fmt.Errorf("%w: %w", ErrRequestBody, io.ErrUnexpectedEOF)
	}
	o.whole, o.length = whole, int64(len(whole))
	return nil
}

// readWhole reads a body to its end, and with an error returns what came before.
func (cl *client) readWhole(o *outgoing, body io.Reader) (whole []byte, err error) {
	for {
		if len(whole) == cap(whole) {
			size := min(max(2*int64(cap(whole)), firstSpool), cl.spool+1)
			if size == int64(cap(whole)) {
				return whole, ErrLengthRequired
			}
			if more := size - int64(cap(whole)); cl.room != nil {
				if !cl.room.Take(more) {
					return whole, ErrNoRoom
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
			return whole, fmt.Errorf("%w: %w", ErrRequestBody, err)
		}
	}
	if int64(len(whole)) > cl.spool {
		return whole, ErrLengthRequired
	}
	return whole, nil
}

func (cl *client) giveBack(o *outgoing) {
	if o.spooled > 0 {
		cl.room.GiveBack(o.spooled)
	}
}
