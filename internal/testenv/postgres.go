package testenv

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A PostgresServer is a running PostgreSQL with its data in a folder of its
// own.
type PostgresServer struct {
	*Process
	// Port is where it listens on 127.0.0.1. User and Password may do
	// everything.
	Port           int
	User, Password string
	// Dir holds its data.
	Dir string
}

// Postgres starts a PostgreSQL server for one test; each setting is one of
// postgresql.conf, such as "max_connections=20".
func Postgres(t testing.TB, settings ...string) *PostgresServer {
	t.Helper()
	return forTest(t, func(dir string) (*PostgresServer, error) { return newPostgres(dir, settings) })
}

// Postgres returns the package's PostgreSQL server.
func (s *Set) Postgres(t testing.TB) *PostgresServer {
	t.Helper()
	return get(t, s, &s.postgres, func(dir string) (*PostgresServer, error) { return newPostgres(dir, nil) })
}

func newPostgres(dir string, settings []string) (*PostgresServer, error) {
	path, err := postgresProgram("postgres")
	if err != nil {
		return nil, err
	}
	initdb, err := postgresProgram("initdb")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p := &PostgresServer{Port: port, User: "once", Password: "once", Dir: dir}
	secret := dir + "/password"
	if err := os.WriteFile(secret, []byte(p.Password), 0o644); err != nil {
		return nil, err
	}
	out, err := UnprivilegedCommand(dir, initdb, "--pgdata="+dir+"/data", "--username="+p.User, "--pwfile="+secret,
		"--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	args := []string{"-D", dir + "/data", "-p", strconv.Itoa(port), "-k", dir, "-h", "127.0.0.1"}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	p.Process = NewProcess(Command{
		Name: "postgres", Path: path, Args: args, Dir: dir, Unprivileged: true,
		StopSignal: syscall.SIGINT, // ends sessions; SIGTERM would wait for them
		Ready:      func() error { return p.run("postgres", "SELECT 1", stopTimeout) },
	})
	return p, nil
}

// postgresProgram finds a program of the newest PostgreSQL that is installed.
func postgresProgram(name string) (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		return "", err
	}
	newest, highest := []string(nil), -1.0
	for _, path := range found {
		version := filepath.Base(filepath.Dir(filepath.Dir(path)))
		if n, err := strconv.ParseFloat(version, 64); err == nil && n > highest {
			newest, highest = []string{path}, n
		}
	}
	return program(name, "postgresql", newest...)
}

// Database makes an empty database for one test, drops it when the test ends,
// and returns its name.
func (p *PostgresServer) Database(t testing.TB) string {
	t.Helper()
	name := databaseName()
	p.Exec(t, "postgres", "CREATE DATABASE "+name)
	t.Cleanup(func() { p.Exec(t, "postgres", "DROP DATABASE "+name+" WITH (FORCE)") })
	return name
}

// URL returns the postgres:// URL of a database.
func (p *PostgresServer) URL(database string) string { return p.urlAt(p.Port, database) }

func (p *PostgresServer) urlAt(port int, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(p.User, p.Password),
		Host: "127.0.0.1:" + strconv.Itoa(port), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Exec runs statements in a database, on a connection of their own.
func (p *PostgresServer) Exec(t testing.TB, database, statements string) {
	t.Helper()
	if err := p.run(database, statements, statementTimeout); err != nil {
		t.Errorf("testenv: %s: %v", statements, err)
	}
}

func (p *PostgresServer) run(database, statements string, bound time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.URL(database)+"&connect_timeout=2")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.PgConn().Exec(ctx, statements).ReadAll()
	return err
}

// A PgBouncerServer is a running PgBouncer in front of a PostgreSQL server.
type PgBouncerServer struct {
	*Process
	postgres *PostgresServer
	port     int
}

// PgBouncer starts a PgBouncer in transaction mode for one test; settings are
// further lines of its configuration, such as "default_pool_size = 5".
func PgBouncer(t testing.TB, p *PostgresServer, settings ...string) *PgBouncerServer {
	t.Helper()
	return forTest(t, func(dir string) (*PgBouncerServer, error) { return newPgBouncer(dir, p, settings) })
}

func newPgBouncer(dir string, p *PostgresServer, settings []string) (*PgBouncerServer, error) {
	path, err := program("pgbouncer", "pgbouncer")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	users, conf := dir+"/users.txt", dir+"/pgbouncer.ini"
	lines := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
max_client_conn = 200
`, p.Port, port, users)
	for _, s := range settings {
		lines += s + "\n"
	}
	for file, text := range map[string]string{users: fmt.Sprintf("%q %q\n", p.User, p.Password), conf: lines} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	b := &PgBouncerServer{postgres: p, port: port}
	b.Process = NewProcess(Command{
		Name: "pgbouncer", Path: path, Args: []string{conf}, Dir: dir, Unprivileged: true,
		StopSignal: syscall.SIGTERM, Ready: b.ask,
	})
	return b, nil
}

// URL returns the postgres:// URL of a database, through the bouncer.
func (b *PgBouncerServer) URL(database string) string { return b.postgres.urlAt(b.port, database) }

func (b *PgBouncerServer) ask() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, b.URL("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
