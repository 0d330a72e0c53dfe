package evidence

import (
	"context"
	"log/slog"
	"time"

	"oncegate/lock"
)

// run writes what gathers, and removes what is past retention, until ctx is
// over.
func (r *Recorder) run(ctx context.Context) {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	writing := failing{log: r.o.Log, fails: "evidence can't be written; it is gathered in memory as far as there is room", works: "evidence is written again"}
	purging := failing{log: r.o.Log, fails: "evidence past its retention can't be removed", works: "evidence past its retention is removed again"}
	var next time.Time // the first round purges, and so makes the table
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		work, cancel := context.WithTimeout(ctx, writeTime)
		_, err := r.write(work)
		r.sweep(time.Now())
		if ctx.Err() == nil {
			writing.told(err, "dropped", r.Dropped())
		}
		if now := time.Now(); err == nil && !now.Before(next) {
			more, err := r.purge(work, now)
			if ctx.Err() == nil {
				purging.told(err)
			}
			if !more {
				next = now.Add(purgeEvery)
			}
		}
		cancel()
	}
}

// purge removes what is past retention, as far as a second's worth, and reports
// whether there is more.
func (r *Recorder) purge(ctx context.Context, now time.Time) (more bool, err error) {
	for removed := 0; removed < purgeMost; {
		n, err := r.o.Store.Purge(ctx, r.o.Namespace, now.Add(-r.o.Retention), purgeBatch)
		if err != nil {
			return false, err
		}
		r.purged.Store(time.Now().UnixNano())
		if removed += n; n < purgeBatch {
			return false, nil
		}
	}
	return true, nil
}

// A failing says once that something fails, and once that it works again.
type failing struct {
	log          *slog.Logger
	fails, works string
	now          bool
}

func (f *failing) told(err error, more ...any) {
	switch {
	case err != nil && !f.now:
		f.log.Warn(f.fails, "error", err)
	case err == nil && f.now:
		f.log.Info(f.works, more...)
	}
	f.now = err != nil
}

// write writes what has gathered up to now, as far as a second's worth, and says how
// much. What could not be written is written with the next call, and so is what comes
// meanwhile: in a storm that is the same entry, again and again.
func (r *Recorder) write(ctx context.Context) (written int, err error) {
	r.mu.Lock()
	gathered := min(len(r.dirty), mostWritten)
	r.mu.Unlock()
	for written < gathered {
		taken, entries := r.take(min(gathered-written, batch))
		if len(entries) == 0 {
			return written, nil
		}
		if err := r.o.Store.Write(ctx, entries); err != nil {
			r.giveBack(taken)
			return written, err
		}
		written += len(entries)
		r.tidy(taken)
	}
	return written, nil
}

// take takes up to most of what has to be written, as it stands.
func (r *Recorder) take(most int) (taken []*gathered, entries []Entry) {
	r.mu.Lock()
	n := min(len(r.dirty), most)
	taken = append(taken, r.dirty[:n]...)
	r.dirty = append(r.dirty[:0], r.dirty[n:]...)
	for _, e := range taken {
		e.dirty = false
		entries = append(entries, e.Entry)
	}
	r.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		e.Key = lock.KeyOf(e.Key.Namespace, e.Key.Scope, e.Text)
	}
	return taken, entries
}

// giveBack makes a batch that could not be written the next one.
func (r *Recorder) giveBack(taken []*gathered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	again := make([]*gathered, 0, len(taken)+len(r.dirty))
	for _, e := range taken {
		if !e.dirty { // else it came again meanwhile, and is on the list
			e.dirty = true
			r.hold(e)
			again = append(again, e)
		}
	}
	r.dirty = append(again, r.dirty...)
}

// tidy lets go of what was written and has been replaced meanwhile.
func (r *Recorder) tidy(written []*gathered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range written {
		if !e.dirty && r.groups[e.group] != e {
			r.drop(e)
		}
	}
}

// sweep lets go of what is written and takes in nothing more; where memory is
// half full, of all that is written: what is alike and comes later gets another
// row.
func (r *Recorder) sweep(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	crowded := r.entries > mostEntries/2 || r.bytes > mostBytes/2
	for g, e := range r.groups {
		if !e.dirty && (crowded || now.Sub(e.First) >= e.group.window()) {
			delete(r.groups, g)
			r.drop(e)
		}
	}
}
