package pglock_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/pglock"
)

// B59: a table of many pages is counted a part at a time, by ranges of its pages,
// so that a limit on statements is no limit on the table; and nothing is left out.
func TestCount(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	s := open(t, pglock.Options{URL: p.URL(database)})
	c := locktest.Begin("model")
	locktest.MustApply(t, s, c)
	p.Exec(t, database, `
		INSERT INTO oncegate_claims
		SELECT first_seen, last_seen, written_at, opened_at, lease_until, runs_until,
			CASE i % 3 WHEN 0 THEN now() - interval '1 s' WHEN 1 THEN now() + interval '1 day' END, due_at, deliveries,
			attempt, unanswered, answer_status, role, 2, mark, CASE i % 2 WHEN 0 THEN namespace ELSE 'other' END, scope,
			sha256(i::text::bytea), token, version, names, payload, reason, repeat('k', 400), group_key, tags, answer_header, answer_body, request
		FROM oncegate_claims, generate_series(1, 60000) i;
		ANALYZE oncegate_claims`)
	got, err := s.Count(t.Context(), c.Next.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	done := lock.ScopeState{Scope: c.Next.Scope, State: lock.StateDone}
	if got.Claims[done] != 20_000 || len(got.Claims) != 2 || got.Over != 10_000 {
		t.Errorf("counted %+v", got)
	}
	conn, err := pgx.Connect(t.Context(), p.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var pages int
	if err := conn.QueryRow(t.Context(), `SELECT pg_relation_size('oncegate_claims') / 8192`).Scan(&pages); err != nil || pages < 4097 {
		t.Fatalf("%d pages are one part, %v", pages, err)
	}
	if plan := explained(t, conn, `SELECT count(*) FROM oncegate_claims WHERE namespace = 'shop' AND ctid >= '(0,0)' AND ctid < '(4096,0)'`); plan != "Tid Range Scan" {
		t.Errorf("a part is read by a %s", plan)
	}
}

// explained is the kind of the node that a plan of an aggregate reads from.
func explained(t *testing.T, c *pgx.Conn, query string) (node string) {
	t.Helper()
	var plans []struct {
		Plan struct {
			Plans []struct {
				Kind string `json:"Node Type"`
			}
		}
	}
	if err := c.QueryRow(t.Context(), "EXPLAIN (FORMAT json) "+query).Scan(&plans); err != nil {
		t.Fatal(err)
	}
	if len(plans) == 0 || len(plans[0].Plan.Plans) == 0 {
		return fmt.Sprint(plans)
	}
	return plans[0].Plan.Plans[0].Kind
}
