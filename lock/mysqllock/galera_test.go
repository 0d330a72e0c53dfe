package mysqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/mysqllock"
)

// galera starts a Galera cluster of n nodes. All begin empty, so that none has to
// be sent what another holds.
func galera(t *testing.T, n int) (nodes []*testenv.MariaDBServer) {
	t.Helper()
	const library = "/usr/lib/galera/libgalera_smm.so"
	if _, err := os.Stat(library); err != nil {
		t.Fatalf("Galera is not installed: apt-get install galera-4: %v", err)
	}
	group := "gcomm://"
	for i := range n {
		at, ist := fmt.Sprint("127.0.0.1:", testenv.Port(t)), fmt.Sprint("127.0.0.1:", testenv.Port(t))
		options := []string{
			"--wsrep-on=ON", "--wsrep-provider=" + library, "--wsrep-cluster-address=" + group, "--wsrep-cluster-name=once",
			"--wsrep-node-address=" + at, "--wsrep-sst-method=rsync",
			"--wsrep-sst-receive-address=127.0.0.1:" + strconv.Itoa(testenv.Port(t)), "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
			"--wsrep-provider-options=gmcast.listen_addr=tcp://" + at + ";ist.recv_addr=" + ist + ";gcache.size=8M",
		}
		if i == 0 {
			options = append(options, "--wsrep-new-cluster")
			group += at
		}
		nodes = append(nodes, testenv.MariaDB(t, options...))
	}
	return nodes
}

// The suite must pass where each process speaks with another node of a cluster. What
// one node has committed is not yet there on the other: the store waits for it.
func TestGalera(t *testing.T) {
	nodes := galera(t, 2)
	database := nodes[0].Database(t)
	url := func(i int) string { return nodes[i%len(nodes)].URL(database) }
	if err := opened(t, mysqllock.Options{URL: url(0)}).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin := raw(t, nodes[0].DSN(database)+"?wsrep_sync_wait=7")
	n := 0
	locktest.Run(t, func(t testing.TB) locktest.Fixture {
		empty(t, admin)
		return locktest.Fixture{
			Open: func(t testing.TB) locktest.Store {
				n++
				return open(t, mysqllock.Options{URL: url(n)})
			},
			Pass:   func(t testing.TB, d time.Duration) { pass(t, admin, d) },
			Stored: func(t testing.TB) int { return stored(t, admin) },
		}
	})
	t.Run("B64 by a node that did not begin it", func(t *testing.T) {
		empty(t, admin)
		proxy := locktest.NewProxy(t, nodes[1].Addr)
		through := strings.Replace(url(1), nodes[1].Addr, proxy.Addr, 1)
		locktest.LostReplies(t, opened(t, mysqllock.Options{URL: through}), proxy)
	})
	t.Run("B56 1047 a node that has lost its cluster", func(t *testing.T) {
		s := opened(t, mysqllock.Options{URL: url(0)})
		e := locktest.Begin("e")
		locktest.MustApply(t, s, e)
		nodes[1].Kill(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := error(nil)
		for err == nil && ctx.Err() == nil { // until it has noticed
			_, err = s.Read(ctx, []lock.Key{e.Next.Key})
		}
		if !errors.Is(err, lock.ErrUnavailable) || ctx.Err() != nil {
			t.Fatalf("read: %v", err)
		}
		if _, err := s.Apply(ctx, []lock.Change{locktest.Begin("new")}); !errors.Is(err, lock.ErrUnavailable) {
			t.Fatalf("apply: %v", err)
		}
		exec(t, admin, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=1'")
		for done := locktest.Settle(e); ctx.Err() == nil; { // until it serves again
			results, err := s.Apply(ctx, []lock.Change{done})
			if err == nil && results[0].Applied(done) {
				return
			}
		}
		t.Error("the node did not come back")
	})
}

// empty removes all records, also where the other node is still told of some.
func empty(t testing.TB, db *sql.DB) {
	t.Helper()
	for {
		_, err := db.Exec("DELETE FROM oncegate_claims")
		if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == 1213 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}
