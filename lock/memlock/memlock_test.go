package memlock_test

import (
	"testing"
	"time"

	"oncegate/lock/locktest"
	"oncegate/lock/memlock"
)

func TestStore(t *testing.T) {
	locktest.Run(t, func(t testing.TB) locktest.Fixture {
		s := memlock.New()
		return locktest.Fixture{
			Open:   func(testing.TB) locktest.Store { return s.Sibling() },
			Pass:   func(_ testing.TB, d time.Duration) { s.Advance(d) },
			Stored: func(testing.TB) int { return s.Len() },
		}
	})
}
