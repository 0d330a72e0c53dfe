package redislock

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"oncegate/lock"
)

// A record is one string. Its head is what scripts read and write: a format
// byte, the version, the state, and seven moments, each a double of
// microseconds since 1970 by the server's clock (which is exact until the year
// 2255), in the order of the fields of moments; 0 of due and expires is none.
// The rest is the affair of this file: numbers as varints, texts and blobs with
// their lengths in front.
const (
	format   = 1
	atState  = 1 + len(lock.Version{})
	atTimes  = atState + 1
	headSize = atTimes + 7*8
)

type moments struct {
	lease, runs, due, expires, first, last, written float64
}

func (m moments) over(now float64) bool { return m.expires != 0 && m.expires <= now }

// tell sets the durations of r to what is left, or how long ago, at now.
func (m moments) tell(r *lock.Record, now float64) {
	r.Lease, r.RunsUntil = micros(m.lease-now), micros(m.runs-now)
	r.Due, r.Retain = some(m.due, now), some(m.expires, now)
	r.FirstSeen, r.LastSeen, r.Written = micros(now-m.first), micros(now-m.last), micros(now-m.written)
}

// some returns what is left until a moment that may be none. Only none is
// zero: a moment that is just now is told as one microsecond ago.
func some(moment, now float64) time.Duration {
	switch moment {
	case 0:
		return 0
	case now:
		return -time.Microsecond
	}
	return micros(moment - now)
}

func micros(n float64) time.Duration { return time.Duration(n) * time.Microsecond }

// encodeRest encodes all of n but the key and what is in the head.
func encodeRest(n *lock.Record) []byte {
	b := make([]byte, 0, 128+len(n.Text)+len(n.AnswerHeader)+len(n.AnswerBody)+len(n.Request))
	for _, v := range []int{
		int(n.Role), int(n.Mark), n.Attempt, n.Unanswered, n.Deliveries, n.AnswerStatus, len(n.Tags),
	} {
		b = binary.AppendVarint(b, int64(v))
	}
	b = append(b, n.Token[:]...)
	for _, d := range []lock.Digest{n.Names, n.Payload} {
		if d == (lock.Digest{}) {
			b = appendBlob(b, nil)
		} else {
			b = appendBlob(b, d[:])
		}
	}
	for _, s := range append([]string{n.Text, n.Reason, n.Group}, n.Tags...) {
		b = appendBlob(b, []byte(s))
	}
	for _, s := range [][]byte{n.AnswerHeader, n.AnswerBody, n.Request} {
		b = appendBlob(b, s)
	}
	return b
}

func appendBlob(b, blob []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(blob))), blob...)
}

// A rest is being decoded. After the first fault it yields zeroes.
type rest struct {
	left  []byte
	wrong bool
}

func (r *rest) number() int {
	v, n := binary.Varint(r.left)
	if n <= 0 {
		r.wrong, r.left = true, nil
		return 0
	}
	r.left = r.left[n:]
	return int(v)
}

func (r *rest) bytes(n uint64) []byte {
	if n > uint64(len(r.left)) {
		r.wrong, r.left = true, nil
		return nil
	}
	b := r.left[:n:n]
	r.left = r.left[n:]
	return b
}

func (r *rest) blob() []byte {
	v, n := binary.Uvarint(r.left)
	if n <= 0 {
		r.wrong, r.left = true, nil
		return nil
	}
	r.left = r.left[n:]
	if v == 0 {
		return nil
	}
	return r.bytes(v)
}

func (r *rest) digest() (d lock.Digest) {
	b := r.blob()
	if b != nil && len(b) != len(d) {
		r.wrong = true
	}
	copy(d[:], b)
	return d
}

// decode returns the record in value, without its times, and those. An error
// says that the value was not written by oncegate, or by a newer one.
func decode(k lock.Key, value []byte) (lock.Record, moments, error) {
	if len(value) < headSize || value[0] != format {
		return lock.Record{}, moments{}, fmt.Errorf("a record is not in a form that this release knows: %w", lock.ErrUnfit)
	}
	n := lock.Record{Key: k, State: lock.State(value[atState])}
	copy(n.Version[:], value[1:])
	var t [7]float64
	for i := range t {
		t[i] = math.Float64frombits(binary.LittleEndian.Uint64(value[atTimes+8*i:]))
	}
	r := &rest{left: value[headSize:]}
	n.Role, n.Mark = lock.Role(r.number()), lock.Mark(r.number())
	n.Attempt, n.Unanswered, n.Deliveries, n.AnswerStatus = r.number(), r.number(), r.number(), r.number()
	tags := r.number()
	copy(n.Token[:], r.bytes(uint64(len(n.Token))))
	n.Names, n.Payload = r.digest(), r.digest()
	n.Text, n.Reason, n.Group = string(r.blob()), string(r.blob()), string(r.blob())
	for i := 0; i < tags && !r.wrong; i++ {
		n.Tags = append(n.Tags, string(r.blob()))
	}
	n.AnswerHeader, n.AnswerBody, n.Request = r.blob(), r.blob(), r.blob()
	if r.wrong || len(r.left) > 0 {
		return lock.Record{}, moments{}, fmt.Errorf("a record is damaged: %w", lock.ErrUnfit)
	}
	return n, moments{t[0], t[1], t[2], t[3], t[4], t[5], t[6]}, nil
}
