package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"oncegate/lock"
	"oncegate/lock/sqlitelock"
)

// networkFileSystem asks what SQLite's own examination asks.
func networkFileSystem(path string) (string, bool) { return sqlitelock.NetworkFileSystem(path) }

// store asks the store whether it answers, keeps what it promises, and lets
// claims be written.
func (r *Report) store(ctx context.Context, o Options) {
	where := o.Config.Store.String()
	if o.Config.Store.Kind == "sqlite" {
		r.fileSystem(o)
	}
	if o.Store == nil {
		r.add("store", where, OK, "is not there yet; serve makes it", "")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	began := time.Now()
	found, err := o.Store.Check(ctx)
	if err != nil {
		r.storeFailed(where, "asked", err)
		return
	}
	took := time.Since(began)
	for _, w := range found {
		switch {
		case w.Name == "filesystem" && o.Config.Store.Kind == "sqlite":
			// said already
		case slices.Contains(o.Config.Store.AcceptWeak, w.Name):
			r.add("store", where, Warning, w.Name+" (accepted): "+w.Detail, "")
		case w.Unknown:
			r.add("store", where, Warning, w.Name+": "+w.Detail, "find it out by hand")
		default:
			r.add("store", where, Fault, w.Name+": "+w.Detail, "put it right, or accept it: store.accept_weak: ["+w.Name+"]")
		}
	}
	if err := writes(ctx, o.Store, o.Config.Namespace); err != nil {
		r.storeFailed(where, "written to", err)
		return
	}
	r.add("store", where, OK, "answers (the first question took "+took.Round(time.Millisecond).String()+"), and lets claims be written and changed", "")
	r.clock(ctx, o.Store, where)
}

func (r *Report) storeFailed(where, doing string, err error) {
	advice := "deliveries are answered `unavailable` until it answers: start it, or put address, user and password right"
	if errors.Is(err, lock.ErrUnfit) {
		advice = "if it is new: `oncegate migrate`, or serve, makes the tables; else put it right, or serve does not start"
	}
	r.add("store", where, Fault, "can't be "+doing+": "+err.Error(), advice)
}

// fileSystem refuses file systems on which SQLite's locks may not hold. The
// file need not be there yet.
func (r *Report) fileSystem(o Options) {
	path := existing(o.Config.Store.Path)
	name, known := o.fileSystem(path)
	switch {
	case !known:
		r.add("file system", path, Warning, "its kind could not be learned", "see to it that it is a local disk")
	case name != "" && slices.Contains(o.Config.Store.AcceptWeak, "filesystem"):
		r.add("file system", path, Warning, "is "+name+" (accepted)", "")
	case name != "":
		r.add("file system", path, Fault, "is "+name+", where SQLite's locks and syncs may not hold", "move state_dir to a local disk, or take another store")
	default:
		r.add("file system", path, OK, "is a local one", "")
	}
}

// The record that doctor writes and changes.
const (
	ownScope  = "oncegate-doctor"
	ownRetain = time.Second
)

// writes tries the rights that claims need: to begin a record, to change it, and
// to read it.
func writes(ctx context.Context, store lock.Store, namespace string) error {
	record := lock.Record{
		Key: lock.KeyOf(namespace, ownScope, rand.Text()), Text: "probe",
		State: lock.StateReleased, Reason: lock.ReasonUnsent, Version: lock.NewVersion(), Retain: ownRetain, Attempt: 1,
	}
	expect := lock.None
	for range 2 {
		change := lock.Change{Expect: expect, Next: record}
		results, err := store.Apply(ctx, []lock.Change{change})
		if err != nil {
			return err
		}
		if err := results[0].Err; err != nil {
			return err
		}
		if !results[0].Applied(change) {
			return errors.New("a change was not applied, though nobody else knows of the record")
		}
		expect, record.Version = record.Version, lock.NewVersion()
	}
	records, err := store.Read(ctx, []lock.Key{record.Key})
	if err != nil {
		return err
	}
	if records[0].Exists() && records[0].Version != expect {
		return errors.New("another record is read than was written")
	}
	return nil
}

// A clock is a store that can tell the time of its server.
type clock interface {
	Now(ctx context.Context) (time.Time, error)
}

// How far the clocks may be apart. The store's alone judges leases, so nothing
// is run twice; but signatures' times are judged by this machine's, with 5m of
// tolerance as a rule.
const (
	clockWarning = 2 * time.Second
	clockFault   = time.Minute
)

func (r *Report) clock(ctx context.Context, store lock.Store, where string) {
	c, ok := store.(clock)
	if !ok {
		return // the store runs by this machine's clock
	}
	before := time.Now()
	there, err := c.Now(ctx)
	if err != nil {
		r.add("clock", where, Warning, "the store does not tell its time: "+err.Error(), "")
		return
	}
	half := time.Since(before) / 2
	apart := there.Sub(before.Add(half)).Abs()
	found := fmt.Sprintf("%s apart from the store's", apart.Round(time.Millisecond))
	switch {
	case apart > clockFault:
		r.add("clock", where, Fault, found+": good signatures may be refused as out of time", "let both machines set their clocks by NTP")
	case apart > clockWarning:
		r.add("clock", where, Warning, found, "let both machines set their clocks by NTP")
	default:
		r.add("clock", where, OK, found, "")
	}
}
