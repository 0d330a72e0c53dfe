package sqlitelock_test

import (
	"path/filepath"
	"testing"

	"oncegate/lock/locktest"
	"oncegate/lock/sqlitelock"
)

// B59: a backlog is purged beside claims.
func TestBackground(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claims.db")
	locktest.Background(t, locktest.BackgroundFixture{
		N:    10_000,
		Open: func(testing.TB) locktest.Store { return sqlitelock.Open(path, sqlitelock.Options{}) },
		Expire: func(t testing.TB, n int) {
			db := raw(t, path)
			defer db.Close()
			db.SetMaxOpenConns(1)
			if _, err := db.Exec(`CREATE TEMP TABLE one AS SELECT * FROM claims LIMIT 1;
				UPDATE one SET expires_at = expires_at - 1000000000000;
				BEGIN;
				WITH RECURSIVE many(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM many WHERE i < ?1)
				INSERT INTO claims (namespace, scope, digest, key_text, role, state, mark, reason, attempt, unanswered, token, version,
					lease_until, runs_until, group_key, first_seen, last_seen, written_at, deliveries, answer_status, expires_at)
				SELECT namespace, scope, randomblob(32), key_text, role, state, mark, reason, attempt, unanswered, token, version,
					lease_until, runs_until, group_key, first_seen, last_seen, written_at, deliveries, answer_status, expires_at
				FROM one, many;
				COMMIT`, n); err != nil {
				t.Fatal(err)
			}
		},
		Stored: func(t testing.TB) (n int) {
			db := raw(t, path)
			defer db.Close()
			if err := db.QueryRow("SELECT count(*) FROM claims").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		},
	})
}
