package proxy_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/memlock"
	"oncegate/lock/mysqllock"
	"oncegate/lock/pglock"
	"oncegate/lock/redislock"
	"oncegate/lock/sqlitelock"
)

// servers are the package's, each started when a test first asks for it.
var servers testenv.Set

func TestMain(m *testing.M) { os.Exit(servers.Run(m)) }

// A store is both halves of one.
type store interface {
	lock.Store
	lock.Catalog
}

// onStores runs a test on each kind of store, on real servers. Open returns an
// empty one.
func onStores(t *testing.T, test func(t *testing.T, open func(*testing.T) store)) {
	kinds := []struct {
		name string
		open func(*testing.T) (store, error)
	}{
		{"memlock", func(*testing.T) (store, error) { return memlock.New(), nil }},
		{"sqlitelock", func(t *testing.T) (store, error) {
			return sqlitelock.Open(filepath.Join(t.TempDir(), "claims.db"), sqlitelock.Options{}), nil
		}},
		{"pglock", func(t *testing.T) (store, error) {
			pg := servers.Postgres(t)
			return pglock.Open(pglock.Options{URL: pg.URL(pg.Database(t))})
		}},
		{"mysqllock", func(t *testing.T) (store, error) {
			maria := servers.MariaDB(t)
			return mysqllock.Open(mysqllock.Options{URL: maria.URL(maria.Database(t))})
		}},
		{"redislock", func(t *testing.T) (store, error) {
			return redislock.Open(redislock.Options{URL: servers.Redis(t).URL, Prefix: rand.Text() + ":"})
		}},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			test(t, func(t *testing.T) store {
				s, err := kind.open(t)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
				return s
			})
		})
	}
}
