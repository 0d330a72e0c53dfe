package pglock

import (
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"oncegate/internal/testenv"
	"oncegate/lock"
)

// Servers are what the tests of this package share.
var Servers testenv.Set

func TestMain(m *testing.M) { os.Exit(Servers.Run(m)) }

// B57: reads that hang, as many as there are, leave a connection to those who
// renew and settle.
func TestReadsDoNotStarveWrites(t *testing.T) {
	p := Servers.Postgres(t)
	for _, pool := range []int{2, 4, 9} {
		s, err := Open(Options{URL: p.URL(p.Database(t)), Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		release, ended := make(chan struct{}), make(chan error)
		const readers = 30
		for range readers {
			go func() {
				ended <- s.read(t.Context(), "read", func(*pgx.Conn) error {
					<-release
					return nil
				})
			}()
		}
		for s.pool.Stat().AcquiredConns() < int32(pool-reserved(pool)) {
			time.Sleep(time.Millisecond)
		}
		c := lock.Change{Next: lock.Record{Key: lock.KeyOf("n", "s", "e"), State: lock.StateRunning, Version: lock.NewVersion()}}
		if _, err := s.Apply(t.Context(), []lock.Change{c}); err != nil {
			t.Errorf("pool of %d: %v", pool, err)
		}
		close(release)
		for range readers {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
