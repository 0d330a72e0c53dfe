package testenv_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"oncegate/internal/testenv"
)

// TestClock puts the servers' clocks forward and back while they run, and over a
// kill.
func TestClock(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (*testenv.Process, func(context.Context) (time.Time, error)){
		"postgres": func(t *testing.T) (*testenv.Process, func(context.Context) (time.Time, error)) {
			p := testenv.Postgres(t)
			return p.Process, asks(t, "pgx", p.URL("postgres"), "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
		},
		"mariadb": func(t *testing.T) (*testenv.Process, func(context.Context) (time.Time, error)) {
			m := testenv.MariaDB(t)
			return m.Process, asks(t, "mysql", m.DSN(m.Database(t)), "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)")
		},
		"redis": func(t *testing.T) (*testenv.Process, func(context.Context) (time.Time, error)) {
			r := testenv.Redis(t)
			client := redis.NewClient(&redis.Options{Addr: r.Addr})
			t.Cleanup(func() {
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			})
			return r.Process, func(ctx context.Context) (time.Time, error) { return client.Time(ctx).Result() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, now := start(t)
			clock := testenv.NewClock(t)
			server.Stop(t)
			server.Under(clock)
			server.Start(t)
			ahead := func(want time.Duration) {
				t.Helper()
				before := time.Now()
				at, err := now(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if least := time.Until(at); least > want || at.Sub(before) < want {
					t.Errorf("the clock is %v to %v ahead, want %v", least, at.Sub(before), want)
				}
			}
			ahead(0)
			for _, d := range []time.Duration{90 * time.Second, -time.Hour, 1500 * time.Millisecond} {
				if err := clock.Set(d); err != nil {
					t.Fatal(err)
				}
				ahead(d)
			}
			server.Kill(t)
			server.Start(t)
			ahead(1500 * time.Millisecond)
		})
	}
}

// asks returns a question for the time, in microseconds.
func asks(t *testing.T, driver, at, question string) func(context.Context) (time.Time, error) {
	db, err := sql.Open(driver, at)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(-1) // each question on a connection of its own
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(ctx context.Context) (time.Time, error) {
		var micros int64
		err := db.QueryRowContext(ctx, question).Scan(&micros)
		if err != nil {
			return time.Time{}, fmt.Errorf("ask for the time: %w", err)
		}
		return time.UnixMicro(micros), nil
	}
}
