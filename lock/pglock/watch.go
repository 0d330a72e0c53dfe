package pglock

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"oncegate/lock"
)

const (
	channel = "oncegate_rested"
	// probeTime bounds how long a notification may take to come round.
	probeTime = 2 * time.Second
	// A notification may have less than 8000 bytes: see NOTIFY in the manual.
	perNotification = 100
	// maxRested bounds what waits to be told. What is more is not told:
	// those who wait find it by asking.
	maxRested = 10000
)

var errNoListen = errors.New("postgres: notifications do not come through, so those who wait must ask")

// Watch implements lock.Watcher, with LISTEN on a connection of its own. It
// ends at once where that does not work, as behind a pooler in transaction
// mode. Replicas tell each other what came to rest only while they watch.
func (s *Store) Watch(ctx context.Context, rested func(lock.Digest)) error {
	done, err := s.calls.Begin()
	if err != nil {
		return err
	}
	defer done()
	if s.options.Mode == ModeExec || s.bare.Load() {
		return errNoListen
	}
	ctx, cancel := s.rested.during(ctx)
	defer cancel()
	config := s.pool.Config().ConnConfig
	if err := s.beforeConnect(ctx, config); err != nil {
		return failed("watch", err)
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return failed("watch", err)
	}
	// The server drops what it listens for with the connection.
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if err := s.listen(ctx, c); err != nil {
		return err
	}
	s.watchers.Add(1)
	defer s.watchers.Add(-1)
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return failed("watch", err)
		}
		for _, d := range digests(n.Payload) {
			rested(d)
		}
	}
}

// listen listens, and makes sure that what is sent from elsewhere arrives.
func (s *Store) listen(ctx context.Context, c *pgx.Conn) error {
	if _, err := c.Exec(ctx, "LISTEN "+channel); err != nil {
		return failed("watch", err)
	}
	probe := "probe " + hex.EncodeToString(newProbe())
	if err := s.notify(ctx, probe); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	for {
		n, err := c.WaitForNotification(waiting)
		switch {
		case err != nil && ctx.Err() == nil && waiting.Err() != nil:
			return errNoListen
		case err != nil:
			return failed("watch", err)
		case n.Payload == probe:
			return nil
		}
	}
}

func newProbe() []byte {
	t := lock.NewToken()
	return t[:]
}

// notify sends one notification, in a transaction of its own: in one that
// writes, the server would let no other that notifies commit at the same time.
func (s *Store) notify(ctx context.Context, payload string) error {
	return s.read(ctx, "notify", func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SELECT pg_notify($1, $2)", channel, payload)
		return err
	})
}

// digests reads a payload; what is no digest is left out.
func digests(payload string) (all []lock.Digest) {
	for word := range strings.FieldsSeq(payload) {
		b, err := hex.DecodeString(word)
		if err == nil && len(b) == len(lock.Digest{}) {
			all = append(all, lock.Digest(b))
		}
	}
	return all
}

// rested tells other replicas what came to rest. One goroutine sends, so that
// no change waits for it.
type rested struct {
	store *Store
	ctx   context.Context // over when the store closes
	end   context.CancelFunc
	ended chan struct{}
	wake  chan struct{} // holds one

	mu      sync.Mutex // guards waiting
	waiting []string
}

func (r *rested) start(s *Store) {
	r.store = s
	r.ctx, r.end = context.WithCancel(context.Background())
	r.ended, r.wake = make(chan struct{}), make(chan struct{}, 1)
	go r.send()
}

// stop ends the sender and every Watch, and waits for the former.
func (r *rested) stop() {
	r.end()
	<-r.ended
}

// during returns a context that is over with ctx or with the store.
func (r *rested) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.ctx, func() { cancel(fmt.Errorf("the store was closed: %w", lock.ErrUnavailable)) })
	return ctx, func() { stop(); cancel(nil) }
}

// tell takes down what a batch brought to rest, if anybody may listen.
func (r *rested) tell(batch []lock.Change, results []lock.Result) {
	if r.store.watchers.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range batch {
		switch batch[i].Next.State {
		case lock.StateDone, lock.StateReleased, lock.StateUnknown:
			if results[i].Applied(batch[i]) && len(r.waiting) < maxRested {
				r.waiting = append(r.waiting, batch[i].Next.Digest.String())
			}
		}
	}
	if len(r.waiting) > 0 {
		select {
		case r.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

func (r *rested) send() {
	defer close(r.ended)
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.wake:
		}
		for words := r.take(); len(words) > 0; words = r.take() {
			ctx, cancel := context.WithTimeout(r.ctx, probeTime)
			err := r.store.notify(ctx, strings.Join(words, " "))
			cancel()
			if err != nil {
				break // it was a hint, and those who wait ask anyway
			}
		}
	}
}

func (r *rested) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), perNotification)
	words := r.waiting[:n:n]
	r.waiting = r.waiting[n:]
	return words
}
