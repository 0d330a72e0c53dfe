package testenv_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
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

// A program that is being started has a copy of every socket for a moment.
func TestPortsWhileProgramsStart(t *testing.T) {
	var starting sync.WaitGroup
	defer starting.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 4 {
		starting.Go(func() {
			for ctx.Err() == nil {
				if err := exec.Command("/bin/true").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 500 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", testenv.Port(t)))
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		testenv.Listen(t, l.Addr().String()).Close()
	}
}
