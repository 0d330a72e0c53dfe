package witness

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"
)

func openMySQL(u *url.URL) (*sql.DB, error) {
	query := ""
	if u.RawQuery != "" {
		query = "?" + u.RawQuery
	}
	// The driver has a form of its own; user and password are set apart from it,
	// for they may hold anything.
	config, err := mysqldriver.ParseDSN("tcp(" + u.Host + ")/" + strings.TrimPrefix(u.EscapedPath(), "/") + query)
	if err != nil {
		return nil, errors.New("is no address of a MySQL database: mysql://host:3306/name?tls=true")
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.MultiStatements, config.InterpolateParams = false, false
	config.Logger = &mysqldriver.NopLogger{}
	connector, err := mysqldriver.NewConnector(config)
	if err != nil {
		return nil, errors.New("is no address of a MySQL database: mysql://host:3306/name?tls=true")
	}
	return sql.OpenDB(syncing{connector}), nil
}

// A syncing connector makes connections that, on a node of a Galera cluster, wait for
// what other nodes have committed before they look: else an effect that the app has
// committed elsewhere is there a little later, and the answer is a wrong no.
type syncing struct{ driver.Connector }

const unknownVariable = 1193

// Connect implements driver.Connector.
func (c syncing) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	e, ok := conn.(driver.ExecerContext)
	if !ok {
		return nil, errors.Join(errors.New("the driver can't execute"), conn.Close())
	}
	_, err = e.ExecContext(ctx, "SET SESSION wsrep_sync_wait = 1", nil)
	if said, is := errors.AsType[*mysqldriver.MySQLError](err); err != nil && !(is && said.Number == unknownVariable) {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil // MySQL knows no such variable: it is no Galera node
}
