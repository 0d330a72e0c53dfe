package sqlitelock

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

const (
	// betweenCheckpoints is how long the log is left alone after a commit or a
	// checkpoint. A commit beside a checkpoint waits for the disk behind it, so many
	// small ones, whose pages are soon written, are felt less than a few large ones.
	betweenCheckpoints = 30 * time.Millisecond
	// emptyAfter is how long nobody has written when the log is emptied.
	emptyAfter = time.Second
	// longLog is from how many pages on (8 MiB) the log is to begin anew.
	longLog = 2048
)

// A checkpointer moves what was committed from the write-ahead log into the file,
// beside the writer: left to commits, one claim in a hundred or so would wait for
// the pages of all those before it. The log begins anew only when all of it was
// moved, which never is so beside a busy writer: the last few pages the writer
// moves itself, between two transactions (see finish). Once nobody writes, the log
// is emptied: what was forgotten is not to be found there.
type checkpointer struct {
	db      *sql.DB
	stirred chan struct{}
	almost  atomic.Bool // all but a few pages of a long log were moved
	quit    context.CancelFunc
	done    chan struct{} // closed when the goroutine has ended
}

func startCheckpointer(path string) (*checkpointer, error) {
	db, err := connect(path, checkpointing, 1)
	if err != nil {
		return nil, err
	}
	ctx, quit := context.WithCancel(context.Background())
	c := &checkpointer{db: db, stirred: make(chan struct{}, 1), quit: quit, done: make(chan struct{})}
	go c.run(ctx)
	return c, nil
}

// stir says that there is something to move.
func (c *checkpointer) stir() {
	select {
	case c.stirred <- struct{}{}:
	default:
	}
}

func (c *checkpointer) run(ctx context.Context) {
	defer close(c.done)
	within := context.WithoutCancel(ctx)
	idle := time.NewTimer(emptyAfter)
	defer idle.Stop()
	for {
		select {
		case <-c.stirred:
		case <-idle.C:
			if checkpoint(within, c.db, "TRUNCATE") > 0 { // somebody reads
				idle.Reset(emptyAfter)
			}
			continue
		case <-ctx.Done():
			return
		}
		pause := time.NewTimer(betweenCheckpoints)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
		if log := checkpoint(within, c.db, "PASSIVE"); log > longLog {
			checkpoint(within, c.db, "PASSIVE") // what came meanwhile
			c.almost.Store(true)
		}
		idle.Reset(emptyAfter)
	}
}

// finish moves what is left of a log that was almost moved. The writer calls it,
// outside a transaction.
func (c *checkpointer) finish(ctx context.Context, writer *sql.Conn) {
	if c.almost.CompareAndSwap(true, false) {
		checkpoint(ctx, writer, "PASSIVE")
	}
}

// checkpoint returns how many pages the log has. Neither mode waits for others.
// Where one fails, what was committed is as safe in the log, and the next one, a
// commit from some size on, or the last Close moves it.
func checkpoint(ctx context.Context, by interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, mode string) (log int) {
	var busy, moved int
	if by.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &log, &moved) != nil {
		return 0
	}
	return log
}

// close ends the checkpointer, after the checkpoint that is under way.
func (c *checkpointer) close() {
	c.quit()
	<-c.done
	c.db.Close()
}
