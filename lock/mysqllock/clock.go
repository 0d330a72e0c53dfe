package mysqllock

import (
	"context"
	"time"
)

// Now returns the time of the server's clock, for a person to compare. The claim
// protocol has no use for it: durations alone cross its seam.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var micros int64
	err := s.read(ctx, "ask for the time", func() error {
		return s.db.QueryRowContext(ctx, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)").Scan(&micros)
	})
	return time.UnixMicro(micros), err
}
