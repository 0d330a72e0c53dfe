package e2e

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// TestRights has an administrator make the tables, by `oncegate migrate`, and then
// serves, operates and prunes as a user who may only read and write rows.
func TestRights(t *testing.T) {
	for name, users := range map[string]func(*testing.T) (admin, less string, grant func()){
		"PostgreSQL": func(t *testing.T) (string, string, func()) {
			p := servers.Postgres(t)
			database := p.Database(t)
			p.Exec(t, database, "CREATE ROLE "+database+" LOGIN PASSWORD 'less'; CREATE SCHEMA once")
			t.Cleanup(func() { p.Exec(t, database, "DROP OWNED BY "+database+"; DROP ROLE "+database) })
			return p.URL(database), as(t, p.URL(database), database), func() {
				p.Exec(t, database, "GRANT USAGE ON SCHEMA once TO "+database+
					"; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA once TO "+database)
			}
		},
		"MariaDB": func(t *testing.T) (string, string, func()) {
			m := servers.MariaDB(t)
			database := m.Database(t)
			return m.URL(database), as(t, m.URL(database), database), func() {
				db, err := sql.Open("mysql", m.DSN(database))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				if _, err := db.Exec(fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %[1]s.* TO '%[1]s'@'%%' IDENTIFIED BY 'less'", database)); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			admin, less, grant := users(t)
			schema := ""
			if name == "PostgreSQL" {
				schema = ", schema: once"
			}
			store := func(url string) string {
				return fmt.Sprintf("namespace: shop\nstore: {url: %q, migrate: never%s}\n", url, schema)
			}
			command := func(url, verb string, args ...string) string {
				file := filepath.Join(testenv.Dir(t), "oncegate.yaml")
				text := "version: 1\nstate_dir: " + filepath.Dir(file) + "\nupstream: http://127.0.0.1:1\n" + store(url) + "routes:" + harness.StripeRoute
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(strings.Fields(verb), append(args, "--config", file)...)
				out, err := exec.Command(binary.Path(t), args...).CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", verb, err, out)
				}
				return string(out)
			}
			command(admin, "migrate")
			grant()

			app := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { return harness.Reply{Body: []byte("done")} })
			gate := binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute, Top: store(less)})
			sender := harness.NewSender()
			defer sender.Close()
			answers := make(firstAnswers)
			work := deliveries(5, 4)
			answers.check(t, work, sender.SendAll(t.Context(), gate.URL+harness.WebhookPath, work, 8))
			if got := gate.Metric(t, "oncegate_deliveries_total", "route=stripe", "result=fresh"); got != 5 {
				t.Errorf("%v deliveries were fresh, want 5", got)
			}
			gate.Stop(t)
			if lost := gate.Log(`"level":"ERROR"`); len(lost) > 0 {
				t.Errorf("it logged %q", lost)
			}
			if shown := command(less, "claims show", work[0].ID); !strings.Contains(shown, "fresh") {
				t.Errorf("its life lacks the evidence:\n%s", shown)
			}
			if said := command(less, "prune"); !strings.Contains(said, "removed 0 claims") {
				t.Errorf("prune said %q", said)
			}
		})
	}
}

// as is a URL with another user, whose password is "less".
func as(t *testing.T, text, user string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, "less")
	return u.String()
}
