package sqlitelock

import (
	"context"
	"database/sql"
	"errors"
)

// A job is one transaction that the writer is to make.
type job struct {
	ctx  context.Context
	do   func(*writer) error
	done chan error // holds one
}

// A writer is the connection that writes, with its statements.
type writer struct {
	// ctx bounds what the writer does inside a transaction: by nothing, as
	// a transaction that is under way is short, and is better ended than
	// interrupted.
	ctx  context.Context
	db   *sql.DB
	conn *sql.Conn
	log  *checkpointer

	begin, commit, rollback                  *sql.Stmt
	insertRecord, updateRecord, selectRecord *sql.Stmt
}

// transact has the writer make a transaction of what do does, and waits for
// it, or for ctx. After an error nobody knows whether it was made; what do
// writes then must not be read.
func (s *Store) transact(ctx context.Context, do func(*writer) error) error {
	done, err := s.calls.Begin()
	if err != nil {
		return err
	}
	j := &job{ctx: ctx, do: do, done: make(chan error, 1)}
	select {
	case <-ctx.Done():
		done()
		return ctx.Err()
	case s.jobs <- j:
		done()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-j.done:
		return err
	}
}

// write is the goroutine that owns the writer. It ends when jobs is closed.
func (s *Store) write() {
	defer close(s.stopped)
	var w *writer
	for j := range s.jobs {
		var err error
		if w == nil {
			w, err = s.openWriter(j.ctx)
		}
		if err == nil {
			var usable bool
			if usable, err = w.transaction(j); !usable {
				w.close()
				w = nil
			}
		}
		j.done <- err
		if w != nil {
			w.log.finish(w.ctx, w.conn)
		}
	}
	if w != nil {
		w.close()
	}
}

// transaction makes one transaction. A connection that is not usable must be
// closed.
func (w *writer) transaction(j *job) (usable bool, err error) {
	if err := j.ctx.Err(); err != nil {
		return true, err
	}
	// Only here another process can make us wait, and only here ctx counts.
	if _, err := w.begin.ExecContext(j.ctx); err != nil {
		return false, err
	}
	err = j.do(w)
	if err == nil {
		if _, err = w.commit.ExecContext(w.ctx); err == nil {
			w.log.stir()
			return true, nil
		}
	}
	_, rollback := w.rollback.ExecContext(w.ctx)
	return rollback == nil, errors.Join(err, rollback)
}

func (s *Store) openWriter(ctx context.Context) (*writer, error) {
	db, err := connect(s.path, writing, 1)
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, s.path, db, !s.options.NoMigrate); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	log, err := startCheckpointer(s.path)
	if err != nil {
		return nil, errors.Join(err, conn.Close(), db.Close())
	}
	w := &writer{ctx: context.WithoutCancel(ctx), db: db, conn: conn, log: log}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&w.begin, "BEGIN IMMEDIATE"},
		{&w.commit, "COMMIT"},
		{&w.rollback, "ROLLBACK"},
		{&w.insertRecord, insertRecord},
		{&w.updateRecord, updateRecord},
		{&w.selectRecord, selectRecord},
	} {
		if *p.stmt, err = conn.PrepareContext(w.ctx, p.text); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// close closes the connection, which ends a transaction that is under way.
// Statements go first: SQLite keeps a connection, locks and all, until its last
// statement is freed. Nothing that was committed depends on the outcome.
func (w *writer) close() {
	for _, stmt := range []*sql.Stmt{w.begin, w.commit, w.rollback, w.insertRecord, w.updateRecord, w.selectRecord} {
		if stmt != nil {
			stmt.Close()
		}
	}
	w.log.close()
	w.conn.Close()
	w.db.Close()
}
