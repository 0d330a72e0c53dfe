package mysqllock

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

var errURL = errors.New("mysql: the url can't be read: it must look like mysql://user:password@host:3306/database, " +
	"with special characters percent-encoded and known parameters only")

// Connector returns what connects as a Store with these options does, for other
// tables beside the claims. Pool and NoMigrate say nothing here.
func Connector(o Options) (driver.Connector, error) { return newConnector(&o) }

// newConnector reads the options. What the libraries say of a URL may hold the
// password, so it is left out.
func newConnector(o *Options) (driver.Connector, error) {
	config, err := parse(o.URL)
	if err != nil {
		return nil, errURL
	}
	if o.TLS != nil {
		config.TLS = o.TLS
	}
	if config.Timeout == 0 {
		config.Timeout = 5 * time.Second
	}
	config.RejectReadOnly = true    // after a failover, try another connection
	config.InterpolateParams = true // saves the trip that prepares
	config.Logger = &mysql.NopLogger{}
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	// What does not fit is refused, not cut; each statement and each commit ends what
	// it ends; and no answer leaves rows out. An administrator may have set other
	// defaults, for other programs.
	config.Params["sql_mode"] = "'STRICT_ALL_TABLES'"
	config.Params["autocommit"] = "1"
	config.Params["completion_type"] = "'NO_CHAIN'"
	config.Params["sql_select_limit"] = "18446744073709551615"
	if o.Password != nil {
		if err := config.Apply(mysql.BeforeConnect(passwordFrom(o.Password))); err != nil {
			return nil, fmt.Errorf("mysql: %w", err)
		}
	}
	inner, err := mysql.NewConnector(config)
	if err != nil {
		return nil, errURL
	}
	return connector{inner}, nil
}

func passwordFrom(ask func(context.Context) (string, error)) func(context.Context, *mysql.Config) error {
	return func(ctx context.Context, config *mysql.Config) (err error) {
		if config.Passwd, err = ask(ctx); err != nil {
			return fmt.Errorf("password: %w", err)
		}
		return nil
	}
}

func parse(text string) (*mysql.Config, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "mysql" || u.Hostname() == "" || strings.Trim(u.Path, "/") == "" {
		return nil, errURL
	}
	// The library reads its own form, which has no escapes but for the
	// database's name; the parts that need some are set afterwards.
	config, err := mysql.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return nil, err
	}
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	config.Net = "tcp"
	config.Addr = strings.TrimSuffix(u.Host, ":"+u.Port()) + ":" + port
	config.DBName = strings.Trim(u.Path, "/")
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	return config, nil
}

// A connector sets up each new connection.
type connector struct{ driver.Connector }

// setup is told to each new connection. At the servers' own default of isolation, a
// look at a row that is not there locks the gap around it. On a node of a Galera
// cluster, what others have committed is there a little later, unless one waits for
// it: a settle would not find its own begin.
var setup = []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET SESSION wsrep_sync_wait = 1"}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	e, ok := conn.(driver.ExecerContext)
	if !ok {
		return nil, errors.Join(errors.New("the driver can't execute"), conn.Close())
	}
	for _, statement := range setup {
		// MySQL, which is never a Galera node under that name, knows no such variable.
		if _, err := e.ExecContext(ctx, statement, nil); err != nil && numberOf(err) != unknownVariable {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}
