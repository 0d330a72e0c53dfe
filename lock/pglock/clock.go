package pglock

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Now returns the time of the server's clock, for a person to compare. The claim
// protocol has no use for it: durations alone cross its seam.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = s.read(ctx, "ask for the time", func(c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	})
	return now, err
}
