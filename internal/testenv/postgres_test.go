package testenv_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"oncegate/internal/testenv"
)

func TestPostgresAndPgBouncer(t *testing.T) {
	p := servers.Postgres(t)
	database := p.Database(t)
	p.Exec(t, database, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)")
	b := testenv.PgBouncer(t, p)
	for _, url := range []string{p.URL(database), b.URL(database)} {
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if err := conn.QueryRow(context.Background(), "SELECT n FROM t", pgx.QueryExecModeExec).Scan(&n); err != nil || n != 7 {
			t.Errorf("got %d, %v", n, err)
		}
		conn.Close(context.Background())
	}
}
