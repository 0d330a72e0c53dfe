package lock

import (
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
}

func encodeDebt(d *debt) ([]byte, error) {
	s := savedDebt{Token: d.token, Undo: d.undo, Retention: d.retention}
	if d.undo == nil {
		due := d.due()
		s.Change = &due
	}
	text, err := json.Marshal(&s)
	if err != nil {
		return nil, fmt.Errorf("settle journal: %w", err)
	}
	return append(binary.AppendUvarint([]byte{payloadDebt}, d.saved), text...), nil
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
	return d, nil
}
