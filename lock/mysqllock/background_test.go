package mysqllock_test

import (
	"fmt"
	"testing"

	"oncegate/internal/testenv"
	"oncegate/lock/locktest"
	"oncegate/lock/mysqllock"
)

// B59: a backlog is purged where no statement may take longer than 2 s.
func TestBackground(t *testing.T) {
	server := testenv.MariaDB(t, "--max-statement-time=2")
	database := server.Database(t)
	dsn, url := server.DSN(database), server.URL(database)
	locktest.Background(t, locktest.BackgroundFixture{
		N:    10_000,
		Open: func(t testing.TB) locktest.Store { return open(t, mysqllock.Options{URL: url}) },
		Expire: func(t testing.TB, n int) {
			exec(t, raw(t, dsn), fmt.Sprintf(`SET STATEMENT max_statement_time = 0 FOR INSERT INTO oncegate_claims
				SELECT namespace, scope, unhex(sha2(seq, 256)), first_seen, last_seen, written_at, lease_until, runs_until,
					expires_at - 1000000000000, due_at, deliveries, attempt, unanswered, answer_status, role, state, mark, token, version,
					names, payload, reason, key_text, group_key, tags, answer_header, answer_body, request
				FROM oncegate_claims, seq_1_to_%d`, n))
		},
		Stored: func(t testing.TB) int { return stored(t, raw(t, dsn)) },
	})
}
