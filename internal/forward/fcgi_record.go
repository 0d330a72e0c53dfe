package forward

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Records of the FastCGI 1.0 specification, section 3.3.
const (
	fcgiVersion = 1
	recordHead  = 8
	maxRecord   = 65535

	typeBegin  = 1
	typeEnd    = 3
	typeParams = 4
	typeStdin  = 5
	typeStdout = 6
	typeStderr = 7

	roleResponder = 1
	flagKeep      = 1
	requestID     = 1 // one request at a time
)

func appendRecordHead(b []byte, kind byte, n int) []byte {
	return append(b, fcgiVersion, kind, 0, requestID, byte(n>>8), byte(n), 0, 0)
}

func appendBegin(b []byte, keep bool) []byte {
	var flags byte
	if keep {
		flags = flagKeep
	}
	return append(appendRecordHead(b, typeBegin, 8), 0, roleResponder, flags, 0, 0, 0, 0, 0)
}

var (
	errRecord  = errors.New("not a FastCGI record of this request")
	errRefused = errors.New("the FastCGI app refused the request")
)

// maxLogged bounds one line of the app's error stream in the log, in bytes.
const maxLogged = 4 << 10

// records is the app's output stream, taken out of the records it comes in. It
// ends with io.EOF only when the app has said that the request is complete. The
// error stream goes to the log.
type records struct {
	c    *conn
	log  *slog.Logger
	left int // of the output record being read
	pad  int // bytes after it
	over bool
}

func (r *records) Read(p []byte) (int, error) {
	for r.left == 0 {
		if r.over {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n, err := r.c.in.Read(p[:min(len(p), r.left)])
	r.left -= n
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next reads up to the next piece of output, or the end.
func (r *records) next() error {
	if _, err := r.c.in.Discard(r.pad); err != nil {
		return unexpected(err)
	}
	r.pad = 0
	var head [recordHead]byte
	if _, err := io.ReadFull(r.c.in, head[:]); err != nil {
		return unexpected(err)
	}
	if head[0] != fcgiVersion || binary.BigEndian.Uint16(head[2:]) != requestID {
		return errRecord
	}
	n := int(binary.BigEndian.Uint16(head[4:]))
	r.pad = int(head[6])
	switch head[1] {
	case typeStdout:
		r.left = n
		return nil
	case typeStderr:
		return r.logs(n)
	case typeEnd:
		return r.end(n)
	}
	return errRecord
}

// logs writes a piece of the error stream to the log.
func (r *records) logs(n int) error {
	line := make([]byte, min(n, maxLogged))
	if _, err := io.ReadFull(r.c.in, line); err != nil {
		return unexpected(err)
	}
	if _, err := r.c.in.Discard(n - len(line)); err != nil {
		return unexpected(err)
	}
	if r.c.limit >= 0 {
		r.c.limit += n // which was no part of the head
	}
	if len(line) > 0 {
		r.log.Warn("app wrote to its error stream", slog.String("text", strings.TrimRight(string(line), "\r\n")))
	}
	return nil
}

// end reads FCGI_END_REQUEST. Its app status is PHP's exit code, which says
// nothing about the answer; nginx ignores it too.
func (r *records) end(n int) error {
	var body [8]byte
	if n != len(body) {
		return errRecord
	}
	if _, err := io.ReadFull(r.c.in, body[:]); err != nil {
		return unexpected(err)
	}
	if _, err := r.c.in.Discard(r.pad); err != nil {
		return unexpected(err)
	}
	r.pad = 0
	if status := body[4]; status != 0 { // 0: FCGI_REQUEST_COMPLETE
		return fmt.Errorf("%w: protocol status %d", errRefused, status)
	}
	r.over = true
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
