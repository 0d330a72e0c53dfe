package testenv_test

import (
	"context"
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oncegate/internal/testenv"
)

var servers testenv.Set

func TestMain(m *testing.M) { os.Exit(servers.Run(m)) }

func TestMariaDB(t *testing.T) {
	m := servers.MariaDB(t)
	if again := servers.MariaDB(t); again != m {
		t.Fatal("the package's tests don't share one server")
	}
	db, err := sql.Open("mysql", m.DSN(m.Database(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB"); err != nil {
		t.Fatal(err)
	}
}

func TestRedisPauseKillStart(t *testing.T) {
	r := testenv.Redis(t)
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: r.Addr, MaxRetries: -1, ReadTimeout: 200 * time.Millisecond, ContextTimeoutEnabled: true})
	defer client.Close()
	if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}

	r.Pause(t)
	if err := client.Get(ctx, "k").Err(); err == nil {
		t.Error("a paused server answered")
	}
	r.Resume(t)
	if err := client.Get(ctx, "k").Err(); err != nil {
		t.Errorf("after Resume: %v", err)
	}

	r.Kill(t)
	if err := client.Get(ctx, "k").Err(); err == nil {
		t.Error("a killed server answered")
	}
	r.Start(t)
	if got, err := client.Get(ctx, "k").Result(); err != nil || got != "v" {
		t.Errorf("after Kill and Start: %q, %v", got, err)
	}
}
