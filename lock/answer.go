package lock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"oncegate/internal/bug"
)

// An Answer is what the app said to an attempt, as it is kept for replay. To
// this package it is a number, a list and bytes.
type Answer struct {
	Status int
	Header []Line
	Body   []byte
	// Stub says that the body was too large to keep and is not here.
	Stub bool
}

// A Line is one header line of a stored answer.
type Line struct{ Name, Value string }

// sealFormat is the first byte of every sealed blob: its format. After it
// comes the length of the id of the key it is encrypted under, and the id;
// length zero says that it is not encrypted.
const sealFormat = 1

// Seal makes of b a blob as stores keep them. It returns nil for nil.
func Seal(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{sealFormat, 0}, b...)
}

// ErrSealed says that a stored blob can't be read: of a format this version
// does not know, or damaged.
var ErrSealed = errors.New("stored blob can't be read")

// Unseal returns what was sealed. The result shares b's memory.
func Unseal(b []byte) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	if len(b) < 2 || b[0] != sealFormat || b[1] != 0 {
		return nil, ErrSealed
	}
	return b[2:], nil
}

// stubFlag is set in the first byte of an encoded header list whose answer
// lost its body.
const stubFlag = 1

// put writes the answer into the record's columns.
func (a *Answer) put(r *Record) {
	flags := byte(0)
	if a.Stub {
		flags = stubFlag
	}
	header := []byte{sealFormat, 0, flags}
	for _, l := range a.Header {
		for _, s := range [2]string{l.Name, l.Value} {
			header = binary.AppendUvarint(header, uint64(len(s)))
			header = append(header, s...)
		}
	}
	r.AnswerStatus, r.AnswerHeader = a.Status, header
	r.AnswerBody = nil
	if len(a.Body) > 0 {
		r.AnswerBody = Seal(a.Body)
	}
}

// stubbed returns an encoded header list that says that the body is not there.
func stubbed(header []byte) []byte {
	if len(header) < 3 {
		return header
	}
	header = slices.Clone(header)
	header[2] |= stubFlag
	return header
}

// StoredAnswer returns the answer kept in the record. Its error is ErrSealed,
// wrapped, where the columns can't be read.
func (r *Record) StoredAnswer() (*Answer, error) {
	header, err := Unseal(r.AnswerHeader)
	if err != nil {
		return nil, fmt.Errorf("answer of %s, header: %w", r.Digest, err)
	}
	body, err := Unseal(r.AnswerBody)
	if err != nil {
		return nil, fmt.Errorf("answer of %s, body: %w", r.Digest, err)
	}
	a := &Answer{Status: r.AnswerStatus, Body: body}
	if bug.Is(bug.EmptyReplay) {
		a.Body = nil
	}
	if len(header) > 0 {
		a.Stub = header[0]&stubFlag != 0
		header = header[1:]
	}
	for len(header) > 0 {
		var l Line
		for _, s := range [2]*string{&l.Name, &l.Value} {
			n, w := binary.Uvarint(header)
			if w <= 0 || n > uint64(len(header)-w) {
				return nil, fmt.Errorf("answer of %s, header: %w", r.Digest, ErrSealed)
			}
			*s = string(header[w : w+int(n)])
			header = header[w+int(n):]
		}
		a.Header = append(a.Header, l)
	}
	return a, nil
}
