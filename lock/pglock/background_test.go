package pglock_test

import (
	"fmt"
	"testing"

	"oncegate/internal/testenv"
	"oncegate/lock/locktest"
	"oncegate/lock/pglock"
)

// B59: a backlog is purged where no statement may take longer than 2 s.
func TestBackground(t *testing.T) {
	p := testenv.Postgres(t, "statement_timeout=2s")
	database := p.Database(t)
	locktest.Background(t, locktest.BackgroundFixture{
		N:    10_000,
		Open: func(t testing.TB) locktest.Store { return open(t, pglock.Options{URL: p.URL(database)}) },
		Expire: func(t testing.TB, n int) {
			p.Exec(t, database, fmt.Sprintf(`SET statement_timeout = 0;
				INSERT INTO oncegate_claims
				SELECT first_seen, last_seen, written_at, opened_at, lease_until, runs_until, now() - interval '1 s', due_at, deliveries,
					attempt, unanswered, answer_status, role, state, mark, namespace, scope, sha256(i::text::bytea), token, version,
					names, payload, reason, key_text, group_key, tags, answer_header, answer_body, request
				FROM oncegate_claims, generate_series(1, %d) i;
				ANALYZE oncegate_claims`, n))
		},
		Stored: func(t testing.TB) int { return stored(t, p.URL(database), "oncegate_claims") },
	})
}
