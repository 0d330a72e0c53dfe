package redislock

import (
	"context"
	"time"
)

// Now returns the time of the server's clock, for a person to compare. The claim
// protocol has no use for it: durations alone cross its seam.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = s.reading(ctx, "ask for the time", func() (err error) {
		now, err = s.client.Time(ctx).Result()
		return err
	})
	return now, err
}
