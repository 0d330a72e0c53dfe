package witness_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"oncegate/internal/delivery"
	"oncegate/internal/testenv"
	"oncegate/keyextract"
	"oncegate/witness"
)

var servers testenv.Set

func TestMain(m *testing.M) { os.Exit(servers.Run(m)) }

func document(body string) *keyextract.Document {
	return keyextract.Parse(&delivery.Delivery{Method: "POST", Target: "/hook", Header: http.Header{}, Body: []byte(body)})
}

// asks compiles one rule that reads /id as id.
func asks(t *testing.T, db *witness.Database, s witness.Spec, timeout time.Duration) *witness.Rules {
	t.Helper()
	s.With = map[string]keyextract.Part{"id": {JSON: "/id"}}
	r, err := witness.Compile([]witness.Spec{s}, witness.Options{Database: db, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func says(t *testing.T, r *witness.Rules, body string, want witness.Answer, cause error) error {
	t.Helper()
	got, err := r.Ask(context.Background(), document(body))
	// An answer that is none always says why.
	if got != want || cause != nil && !errors.Is(err, cause) || (got == witness.Unknown) != (err != nil) {
		t.Errorf("%s: %s (%v), want %s (%v)", body, got, err, want, cause)
	}
	var typed *witness.Error
	if err != nil && !errors.As(err, &typed) {
		t.Errorf("%T is no *witness.Error", err)
	}
	return err
}

func open(t *testing.T, url string) *witness.Database {
	t.Helper()
	db, err := witness.OpenDatabase(witness.DatabaseSpec{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func exec(t *testing.T, driver, dsn string, statements ...string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

var table = []string{
	"CREATE TABLE payments (invoice VARCHAR(100), number BIGINT)",
	"INSERT INTO payments VALUES ('in_1', 9007199254740993), ('0', 0)",
}

// A place is one real database.
type place struct {
	name, url string
	sleep     string // a query that takes 30 s
}

func places(t *testing.T) []place {
	pg := servers.Postgres(t)
	pgName := pg.Database(t)
	pgURL := pg.URL(pgName)
	exec(t, "pgx", pgURL, table...)
	maria := servers.MariaDB(t)
	name := maria.Database(t)
	exec(t, "mysql", maria.DSN(name), table...)
	path := filepath.Join(t.TempDir(), "app.sqlite")
	exec(t, "sqlite", path, table...)
	bouncer := testenv.PgBouncer(t, pg, "pool_mode=transaction")
	return []place{
		{"postgres", pgURL, "SELECT 1 FROM pg_sleep(30) WHERE :id = 'in_1'"},
		{"postgres behind a pooler", bouncer.URL(pgName), "SELECT 1 FROM pg_sleep(30) WHERE :id = 'in_1'"},
		{"mariadb", maria.URL(name), "SELECT 1 FROM (SELECT SLEEP(30) AS s) AS t WHERE :id = 'in_1'"},
		{"sqlite", "sqlite://" + path, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT 1 FROM n WHERE i = 1000000000 AND :id = 'in_1'"},
	}
}

func TestSQL(t *testing.T) {
	for _, p := range places(t) {
		t.Run(p.name, func(t *testing.T) {
			db := open(t, p.url)
			text := asks(t, db, witness.Spec{SQL: "SELECT 1 FROM payments WHERE invoice = :id"}, 5*time.Second)
			number := asks(t, db, witness.Spec{SQL: "SELECT 1 FROM payments WHERE number = :id;"}, 5*time.Second)
			twice := asks(t, db, witness.Spec{SQL: "SELECT 1 FROM payments WHERE invoice = :id -- :not\n OR invoice = ':no' OR :id = 'always'"}, 5*time.Second)
			count := asks(t, db, witness.Spec{SQL: "SELECT count(*) FROM payments WHERE invoice = :id"}, 5*time.Second)

			says(t, text, `{"id":"in_1"}`, witness.Yes, nil)
			says(t, text, `{"id":"in_2"}`, witness.No, nil)
			says(t, text, `{"id":"x' OR '1'='1"}`, witness.No, nil)
			says(t, text, `{"id":null}`, witness.Unknown, witness.ErrValue)
			says(t, text, `{}`, witness.Unknown, witness.ErrValue)
			says(t, number, `{"id":9007199254740993}`, witness.Yes, nil)
			says(t, number, `{"id":9007199254740992}`, witness.No, nil)
			says(t, twice, `{"id":"in_1"}`, witness.Yes, nil)
			says(t, twice, `{"id":"always"}`, witness.Yes, nil)
			says(t, twice, `{"id":"never"}`, witness.No, nil)
			says(t, count, `{"id":"in_1"}`, witness.Yes, nil)
			says(t, count, `{"id":"in_2"}`, witness.Unknown, witness.ErrEmptyRow)

			start := time.Now()
			slow := asks(t, db, witness.Spec{SQL: p.sleep}, 300*time.Millisecond)
			says(t, slow, `{"id":"in_1"}`, witness.Unknown, nil)
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("answered after %v", took)
			}
			says(t, text, `{"id":"in_1"}`, witness.Yes, nil)

			wrong := asks(t, db, witness.Spec{SQL: "SELECT 1 FROM nowhere WHERE x = :id"}, 5*time.Second)
			err := says(t, wrong, `{"id":"customer-secret"}`, witness.Unknown, nil)
			var code *witness.SQLError
			if !errors.As(err, &code) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
		})
	}
}

// On a node of a Galera cluster the app's effect may have been committed on another.
func TestGaleraIsWaitedFor(t *testing.T) {
	maria := servers.MariaDB(t)
	db := open(t, maria.URL(maria.Database(t)))
	waits := asks(t, db, witness.Spec{SQL: "SELECT 1 FROM dual WHERE @@session.wsrep_sync_wait = :id"}, 5*time.Second)
	for range 3 {
		says(t, waits, `{"id":1}`, witness.Yes, nil)
	}
}

func TestSQLWritesNothing(t *testing.T) {
	pg := servers.Postgres(t)
	url := pg.URL(pg.Database(t))
	exec(t, "pgx", url, table...)
	r := asks(t, open(t, url), witness.Spec{SQL: "WITH x AS (INSERT INTO payments VALUES (:id) RETURNING 1) SELECT 1 FROM x"}, 5*time.Second)
	err := says(t, r, `{"id":"in_9"}`, witness.Unknown, nil)
	var code *witness.SQLError
	if !errors.As(err, &code) || code.Code != "25006" {
		t.Errorf("%v", err)
	}

	// A value of the wrong type is the database's to refuse, and not to be told.
	number := asks(t, open(t, url), witness.Spec{SQL: "SELECT 1 FROM payments WHERE number = :id"}, 5*time.Second)
	if err := says(t, number, `{"id":"card-4242"}`, witness.Unknown, nil); err == nil || strings.Contains(err.Error(), "4242") {
		t.Errorf("%v", err)
	}
}

func TestReplicasAreRefused(t *testing.T) {
	t.Run("postgres in recovery", func(t *testing.T) {
		pg := testenv.Postgres(t)
		url := pg.URL(pg.Database(t))
		exec(t, "pgx", url, table...)
		pg.Stop(t)
		if err := os.WriteFile(filepath.Join(pg.Dir, "data", "standby.signal"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		pg.Start(t)
		r := asks(t, open(t, url), witness.Spec{SQL: "SELECT 1 FROM payments WHERE invoice = :id"}, 10*time.Second)
		says(t, r, `{"id":"in_1"}`, witness.Unknown, witness.ErrReplica)
		says(t, r, `{"id":"in_2"}`, witness.Unknown, witness.ErrReplica)
		// Back to what it was, for the test's database is dropped.
		pg.Stop(t)
		if err := os.Remove(filepath.Join(pg.Dir, "data", "standby.signal")); err != nil {
			t.Fatal(err)
		}
		pg.Start(t)
	})
	t.Run("mariadb that is read-only", func(t *testing.T) {
		maria := testenv.MariaDB(t)
		name := maria.Database(t)
		exec(t, "mysql", maria.DSN(name), table...)
		r := asks(t, open(t, maria.URL(name)), witness.Spec{SQL: "SELECT 1 FROM payments WHERE invoice = :id"}, 10*time.Second)
		says(t, r, `{"id":"in_1"}`, witness.Yes, nil)
		exec(t, "mysql", maria.DSN(name), "SET GLOBAL read_only = 1")
		says(t, r, `{"id":"in_1"}`, witness.Unknown, witness.ErrReplica)
		exec(t, "mysql", maria.DSN(name), "SET GLOBAL read_only = 0")
		says(t, r, `{"id":"in_2"}`, witness.No, nil)
	})
}

func TestDatabaseAway(t *testing.T) {
	nowhere := "127.0.0.1:" + fmt.Sprint(testenv.Port(t))
	for _, url := range []string{
		"postgres://u:hidden@" + nowhere + "/db", "mysql://u:hidden@" + nowhere + "/db", "sqlite://" + filepath.Join(t.TempDir(), "none.sqlite"),
	} {
		r := asks(t, open(t, url), witness.Spec{SQL: "SELECT 1 FROM payments WHERE invoice = :id"}, time.Second)
		if err := says(t, r, `{"id":"in_1"}`, witness.Unknown, nil); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestOpenDatabase(t *testing.T) {
	for _, url := range []string{"", "oracle://x/y", "postgres://h:port/x", "sqlite://relative/path", "sqlite:", "mysql://%zz:hidden@h/x", "mysql://h/x?parseTime=hidden"} {
		if _, err := witness.OpenDatabase(witness.DatabaseSpec{URL: url, Password: "hidden"}); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %v", url, err)
		}
	}
	t.Run("user and password stand apart, and may hold anything", func(t *testing.T) {
		maria := servers.MariaDB(t)
		name := maria.Database(t)
		exec(t, "mysql", maria.DSN(name), append(table, `CREATE USER 'a@b:c/d' IDENTIFIED BY 'p/w@?#%2F:'`, `GRANT SELECT ON *.* TO 'a@b:c/d'`)...)
		db, err := witness.OpenDatabase(witness.DatabaseSpec{URL: "mysql://" + maria.Addr + "/" + name, User: "a@b:c/d", Password: "p/w@?#%2F:"})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		says(t, asks(t, db, witness.Spec{SQL: "SELECT 1 FROM payments WHERE invoice = :id"}, 5*time.Second), `{"id":"in_1"}`, witness.Yes, nil)
		exec(t, "mysql", maria.DSN(name), `DROP USER 'a@b:c/d'`)
	})
}

func TestHTTP(t *testing.T) {
	var mu sync.Mutex // guards asked: the handler may end after its answer was read
	var asked []string
	take := func() []string {
		mu.Lock()
		defer mu.Unlock()
		taken := asked
		asked = nil
		return taken
	}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.RequestURI)
		mu.Unlock()
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/effects/s%d", &status); err == nil {
			if status == 302 {
				w.Header().Set("Location", "/effects/s200")
			}
			w.WriteHeader(status)
		}
		if strings.HasSuffix(r.URL.Path, "slow") {
			<-r.Context().Done()
		}
	}))
	defer app.Close()
	r := asks(t, nil, witness.Spec{HTTP: app.URL + "/effects/{id}?of={id}"}, 300*time.Millisecond)
	for id, want := range map[string]witness.Answer{
		"s200": witness.Yes, "s204": witness.Yes, "s299": witness.Yes, "s404": witness.No,
		"s302": witness.Unknown, "s401": witness.Unknown, "s410": witness.Unknown, "s500": witness.Unknown, "s503": witness.Unknown,
	} {
		var cause error
		if want == witness.Unknown {
			cause = witness.ErrStatus
		}
		says(t, r, `{"id":"`+id+`"}`, want, cause)
	}
	if asked := take(); len(asked) != 9 {
		t.Errorf("asked %d times: a redirect was followed", len(asked))
	}
	says(t, r, `{"id":"slow"}`, witness.Unknown, witness.ErrTimeout)

	take()
	says(t, r, `{"id":"a/../b?c#d e%2F{x}é"}`, witness.Yes, nil)
	want := "GET /effects/a%2F..%2Fb%3Fc%23d%20e%252F%7Bx%7D%C3%A9?of=a%2F..%2Fb%3Fc%23d+e%252F%7Bx%7D%C3%A9"
	if asked := take(); !slices.Equal(asked, []string{want}) {
		t.Errorf("asked %q\nwant  %q", asked, want)
	}
	says(t, r, `{"id":".."}`, witness.Unknown, witness.ErrValue)
	says(t, r, `{"id":"."}`, witness.Unknown, witness.ErrValue)
	says(t, r, `{}`, witness.Unknown, witness.ErrValue)
	if asked := take(); len(asked) != 0 {
		t.Errorf("asked %q", asked)
	}

	away := asks(t, nil, witness.Spec{HTTP: fmt.Sprintf("http://127.0.0.1:%d/{id}", testenv.Port(t))}, time.Second)
	if err := says(t, away, `{"id":"customer-secret"}`, witness.Unknown, nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	var op *net.OpError
	if _, err := away.Ask(context.Background(), document(`{"id":"x"}`)); !errors.As(err, &op) {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestRules(t *testing.T) {
	paid := "invoice.paid"
	app := httptest.NewServer(http.NotFoundHandler())
	defer app.Close()
	when := func(kind string) *keyextract.Condition {
		return &keyextract.Condition{JSON: "/type", In: []string{kind}}
	}
	id := map[string]keyextract.Part{"id": {JSON: "/id"}}
	compile := func(specs ...witness.Spec) *witness.Rules {
		r, err := witness.Compile(specs, witness.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	asked := witness.Spec{When: when(paid), With: id, HTTP: app.URL + "/{id}"}
	says(t, compile(asked), `{"id":"1","type":"invoice.paid"}`, witness.No, nil)
	says(t, compile(asked), `{"id":"1","type":"other"}`, witness.Hold, nil)
	says(t, compile(asked, witness.Spec{Otherwise: "retry"}), `{"id":"1","type":"other"}`, witness.Retry, nil)
	says(t, compile(asked, witness.Spec{Otherwise: "hold"}), `{"id":"1","type":"other"}`, witness.Hold, nil)
	says(t, compile(asked), `{"id":"1","type":"a","type":"b"}`, witness.Unknown, keyextract.ErrMalformed)
}

func TestFaults(t *testing.T) {
	id := map[string]keyextract.Part{"id": {JSON: "/id"}}
	db := open(t, "postgres://127.0.0.1:1/x")
	mdb := open(t, "mysql://127.0.0.1:1/x")
	for _, c := range []struct {
		name  string
		specs []witness.Spec
		db    *witness.Database
		want  string
	}{
		{"no rules", nil, nil, "witness has no rules"},
		{"nothing asked", []witness.Spec{{With: id}}, nil, "needs one of"},
		{"two asked", []witness.Spec{{With: id, SQL: "SELECT 1", HTTP: "http://x/{id}"}}, db, "needs one of"},
		{"otherwise first", []witness.Spec{{Otherwise: "hold"}, {With: id, HTTP: "http://x/{id}"}}, nil, "last rule"},
		{"otherwise what", []witness.Spec{{Otherwise: "guess"}}, nil, "retry or hold"},
		{"a rule that hides others", []witness.Spec{{With: id, HTTP: "http://x/{id}"}, {Otherwise: "hold"}}, nil, "never looked at"},
		{"no database", []witness.Spec{{With: id, SQL: "SELECT :id"}}, nil, "witness_db"},
		{"not named", []witness.Spec{{With: id, SQL: "SELECT :id, :other"}}, db, "witness[0].sql asks for :other, which with does not name"},
		{"nothing named, by SQL", []witness.Spec{{SQL: "SELECT :id, :other"}}, db, "witness[0].with is missing: sql asks for :id, :other;"},
		{"nothing named, by HTTP", []witness.Spec{{HTTP: "http://x/{id}"}}, nil, "witness[0].with is missing: http asks for {id};"},
		{"the same for all events", []witness.Spec{{SQL: "SELECT 1"}}, db, "witness[0].sql asks for no value"},
		{"not used", []witness.Spec{{With: id, SQL: "SELECT 1"}}, db, "does not use id"},
		{"no select", []witness.Spec{{With: id, SQL: "DELETE FROM x WHERE y = :id"}}, db, "SELECT"},
		{"two statements", []witness.Spec{{With: id, SQL: "SELECT :id; DROP TABLE x"}}, db, "SELECT"},
		{"own places", []witness.Spec{{With: id, SQL: "SELECT :id WHERE $1"}}, db, "driver"},
		{"own places, mysql", []witness.Spec{{With: id, SQL: "SELECT :id WHERE ?"}}, mdb, "driver"},
		{"a quotation without end", []witness.Spec{{With: id, SQL: "SELECT :id WHERE 'x"}}, db, "does not end"},
		{"a bad name", []witness.Spec{{With: map[string]keyextract.Part{"Id": {JSON: "/id"}}, SQL: "SELECT 1"}}, db, "is no name"},
		{"a bad part", []witness.Spec{{With: map[string]keyextract.Part{"id": {JSON: "id"}}, SQL: "SELECT :id"}}, db, "with"},
		{"a bad condition", []witness.Spec{{When: &keyextract.Condition{JSON: "/x"}, With: id, SQL: "SELECT :id"}}, db, "when"},
		{"another scheme", []witness.Spec{{With: id, HTTP: "ftp://x/{id}"}}, nil, "http"},
		{"a host from the delivery", []witness.Spec{{With: id, HTTP: "http://{id}/x"}}, nil, "path and query"},
		{"a host that goes on in the delivery", []witness.Spec{{With: id, HTTP: "http://x{id}/y"}}, nil, "path and query"},
		{"a port from the delivery", []witness.Spec{{With: id, HTTP: "http://x:{id}/y"}}, nil, "http"},
		{"a place without end", []witness.Spec{{With: id, HTTP: "http://x/{id"}}, nil, "path and query"},
		{"a password in an address", []witness.Spec{{With: id, HTTP: "http://u:hidden@x/{id}"}}, nil, "password"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := witness.Compile(c.specs, witness.Options{Database: c.db})
			var faults witness.Faults
			if !errors.As(err, &faults) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%v", err)
			}
		})
	}
}
