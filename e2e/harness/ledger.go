package harness

import (
	"database/sql"
	"testing"
)

// A Run is one run of the shop's webhook handler, as the shop noted it down.
type Run struct {
	Event string // Stripe's ID of it
	// OncegateEvent and OncegateAttempt are the headers that the handler saw,
	// empty where there were none.
	OncegateEvent, OncegateAttempt string
	// Receipt is the random value in the run's answer.
	Receipt string
	// Finished says that the handler came to its end.
	Finished bool
}

// Payments counts the payments: one row for each run of the handler.
func (s *Shop) Payments(t testing.TB) int { return s.count(t, "payments") }

// Enrolments counts the rows of the other table that each run writes to.
func (s *Shop) Enrolments(t testing.TB) int { return s.count(t, "enrolments") }

// Entries counts how often the webhook's handler began.
func (s *Shop) Entries(t testing.TB) int { return s.count(t, "ledger_entries") }

func (s *Shop) count(t testing.TB, table string) (n int) {
	t.Helper()
	if err := s.db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Runs lists the runs of the webhook's handler in the order in which they
// began.
func (s *Shop) Runs(t testing.TB) []Run {
	t.Helper()
	rows, err := s.db.Query("SELECT event, oncegate_event, oncegate_attempt, receipt, finished FROM ledger_entries ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var runs []Run
	for rows.Next() {
		var r Run
		var event, attempt sql.NullString
		if err := rows.Scan(&r.Event, &event, &attempt, &r.Receipt, &r.Finished); err != nil {
			t.Fatal(err)
		}
		r.OncegateEvent, r.OncegateAttempt = event.String, attempt.String
		runs = append(runs, r)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return runs
}
