package lock

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The first byte of a journal's payload. After it comes the number, and then,
// for a debt, a savedDebt as JSON.
const (
	payloadStrike byte = 1
	payloadDebt   byte = 2
)

var errNoDebt = errors.New("no debt")

// A savedDebt is a debt as it lies on disk. Durations count from when it is
// read again: so the app is given too much time rather than too little.
type savedDebt struct {
	Token     Token
	Change    *Change `json:",omitempty"`
	Undo      *Change `json:",omitempty"`
	Retention time.Duration
	// Held and Lease say as what, and for how long, the claim is renewed until the
	// change stands. Held lacks the request where the change has the same.
	Held        *Record       `json:",omitempty"`
	HeldRequest bool          `json:",omitempty"`
	Lease       time.Duration `json:",omitempty"`
}

// encodeDebt returns the payload of a debt, with its blobs encrypted where seal is
// not nil.
func encodeDebt(d *debt, seal func(*Record) error) ([]byte, error) {
	s := savedDebt{Token: d.token, Retention: d.retention}
	if d.undo == nil {
		due := d.due()
		s.Change = &due
	} else {
		undo := *d.undo
		s.Undo = &undo
	}
	if d.held != nil && d.lease > 0 {
		held := *d.held
		s.Held, s.Lease = &held, d.lease
		if s.Change != nil && held.Request != nil && bytes.Equal(held.Request, s.Change.Next.Request) {
			held.Request, s.HeldRequest = nil, true
		}
	}
	err := s.seal(seal)
	if err != nil {
		return nil, fmt.Errorf("settle journal: %w", err)
	}
	text, err := json.Marshal(&s)
	if err != nil {
		return nil, fmt.Errorf("settle journal: %w", err)
	}
	return append(binary.AppendUvarint([]byte{payloadDebt}, d.saved), text...), nil
}

// seal encrypts the blobs.
func (s *savedDebt) seal(seal func(*Record) error) error {
	if seal == nil {
		return nil
	}
	var errs []error
	for _, c := range []*Change{s.Change, s.Undo} {
		if c != nil {
			errs = append(errs, seal(&c.Next))
		}
	}
	if s.Held != nil {
		errs = append(errs, seal(s.Held))
	}
	return errors.Join(errs...)
}

func decodeDebt(payload []byte) (*debt, error) {
	if len(payload) < 2 || payload[0] != payloadDebt {
		return nil, errNoDebt
	}
	number, w := binary.Uvarint(payload[1:])
	if w <= 0 || number == 0 {
		return nil, errNoDebt
	}
	var s savedDebt
	if err := json.Unmarshal(payload[1+w:], &s); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDebt, err)
	}
	d := &debt{token: s.Token, undo: s.Undo, retention: s.Retention, saved: number}
	switch {
	case s.Undo != nil && s.Change == nil:
		d.key = s.Undo.Next.Key
	case s.Undo == nil && s.Change != nil:
		d.change, d.key = *s.Change, s.Change.Next.Key
		if left := d.change.Next.RunsUntil; left > 0 {
			d.appUntil = time.Now().Add(left)
		}
	default:
		return nil, errNoDebt
	}
	if err := d.hold(&s); err != nil {
		return nil, err
	}
	return d, nil
}

// hold takes over how the claim is renewed. How long ago it was is not known, so
// that the first renewal is due at once.
func (d *debt) hold(s *savedDebt) error {
	if s.Held == nil {
		return nil // an undo, or what was given back, or written by a version that did not say
	}
	if d.undo != nil || s.Lease <= 0 || s.Held.Key != d.key {
		return errNoDebt
	}
	d.held, d.lease = s.Held, s.Lease
	if s.HeldRequest {
		d.held.Request = d.change.Next.Request
	}
	return nil
}
