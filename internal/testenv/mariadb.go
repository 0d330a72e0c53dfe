package testenv

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// A MariaDBServer is a running mariadbd with its data in a folder of its own.
type MariaDBServer struct {
	*Process
	// Addr is its host:port, Socket its Unix socket. User and Password may do
	// everything.
	Addr, Socket, User, Password string
	// Dir holds its data.
	Dir string
}

// MariaDB starts a MariaDB server for one test; options are those of
// mariadbd, such as "--max-connections=5".
func MariaDB(t testing.TB, options ...string) *MariaDBServer {
	t.Helper()
	return forTest(t, func(dir string) (*MariaDBServer, error) { return newMariaDB(dir, options) })
}

func newMariaDB(dir string, options []string) (*MariaDBServer, error) {
	path, err := program("mariadbd", "mariadb-server")
	if err != nil {
		return nil, err
	}
	install, err := program("mariadb-install-db", "mariadb-server")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	data := dir + "/data"
	out, err := UnprivilegedCommand(dir, install, "--no-defaults", "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	m := &MariaDBServer{
		Addr: "127.0.0.1:" + strconv.Itoa(port), Socket: dir + "/my.sock",
		User: "once", Password: "once", Dir: dir,
	}
	args := append([]string{
		"--no-defaults", "--datadir=" + data,
		"--tmpdir=" + dir, // a server that starts removes what others have in one that they share
		"--socket=" + m.Socket, "--pid-file=" + dir + "/my.pid",
		"--bind-address=127.0.0.1", "--port=" + strconv.Itoa(port), "--skip-name-resolve",
		"--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M",
	}, options...)
	m.Process = NewProcess(Command{
		Name: "mariadbd", Path: path, Args: args, Dir: dir, Unprivileged: true,
		Ready: m.makeUser,
	})
	return m, nil
}

// makeUser is how the server is asked whether it serves: it makes the user
// that tests log in as, over the socket, where root needs no password.
func (m *MariaDBServer) makeUser() error {
	db, err := sql.Open("mysql", (&mysql.Config{
		User: "root", Net: "unix", Addr: m.Socket,
		AllowNativePasswords: true, Timeout: time.Second, Logger: &mysql.NopLogger{},
	}).FormatDSN())
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = db.ExecContext(ctx, fmt.Sprintf("GRANT ALL ON *.* TO '%s'@'%%' IDENTIFIED BY '%s' WITH GRANT OPTION", m.User, m.Password))
	return err
}

// Database makes an empty database for one test, drops it when the test ends,
// and returns its name.
func (m *MariaDBServer) Database(t testing.TB) string {
	t.Helper()
	name := databaseName()
	m.exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { m.exec(t, "DROP DATABASE "+name) })
	return name
}

// DSN returns the data source name of a database for go-sql-driver/mysql.
func (m *MariaDBServer) DSN(database string) string {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = m.User, m.Password, "tcp", m.Addr, database
	return c.FormatDSN()
}

// URL returns the mysql:// URL of a database, as a store's url wants it.
func (m *MariaDBServer) URL(database string) string {
	return fmt.Sprintf("mysql://%s:%s@%s/%s", m.User, m.Password, m.Addr, database)
}

func (m *MariaDBServer) exec(t testing.TB, statement string) {
	t.Helper()
	db, err := sql.Open("mysql", m.DSN(""))
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Errorf("testenv: %s: %v", statement, err)
	}
}
