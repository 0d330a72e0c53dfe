package redislock

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/redis/go-redis/v9"

	"oncegate/lock"
)

// The first word of what a server says is its code.
const (
	codeNoScript = "NOSCRIPT" // the script must be sent whole
	codeReadOnly = "READONLY" // a replica
	codeUnfit    = "UNFIT"    // said by our own scripts
)

// failed wraps what the library or the server said. Where the server answers
// but can't serve as a store it is unfit. All else counts as out of reach: it
// is loading, full, moving, or not there.
func failed(doing string, err error) error {
	if errors.Is(err, lock.ErrUnfit) || errors.Is(err, lock.ErrUnavailable) {
		return fmt.Errorf("redis: %s: %w", doing, err)
	}
	kind := lock.ErrUnavailable
	for _, code := range []string{
		codeUnfit, codeReadOnly, "NOPERM", // no right to a command or key
		"MISCONF",   // it can't write to its disk
		"WRONGTYPE", // somebody else's key
	} {
		if redis.HasErrorPrefix(err, code) {
			kind = lock.ErrUnfit
		}
	}
	return fmt.Errorf("redis: %s: %w: %w", doing, kind, err)
}

// lost reports whether the connection broke, or leads to a server that can't
// write any more, so that another may serve.
func lost(err error) bool {
	if redis.HasErrorPrefix(err, codeReadOnly) {
		return true
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
