package main

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the store is locked by another

	"oncegate/internal/testenv"
	"oncegate/lock"
)

// What the operator puts in, which is said nowhere.
const (
	canarySecret = "whsec_SECRET_OF_THE_ENVIRONMENT"
	canaryToken  = "TOKEN_OF_THE_FILE_0123456789"
	canaryHeader = "HEADER_OF_THE_COLLECTOR"
)

// serveCanaries starts oncegate with secrets in its file and environment, and a
// collector of spans.
func serveCanaries(t *testing.T, app, collector, more string) *served {
	t.Helper()
	s := &served{file: filepath.Join(t.TempDir(), "oncegate.yaml"), ended: make(chan error, 1)}
	s.url = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	s.health = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	s.adminURL = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	s.env = append(os.Environ(), "WEBHOOK_SECRET="+canarySecret,
		"OTEL_EXPORTER_OTLP_ENDPOINT="+collector, "OTEL_EXPORTER_OTLP_HEADERS=authorization="+canaryHeader,
		"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_METRIC_EXPORT_INTERVAL=300")
	writeFile(t, s.file, fmt.Sprintf(`version: 1
listen: %s
health: %s
admin: %s
state_dir: %s
upstream: %s
log_level: debug
redact: [X-Api-Key]
admin_tokens: {looker: {token: %s, read_only: true}}
%s
routes:
  stripe: {path: /stripe/webhook, provider: stripe, secrets: "${WEBHOOK_SECRET}", tags: {order: {json: /order}}}
  form:
    path: /form
    secrets: "${WEBHOOK_SECRET}"
    verify: {hmac: sha256, header: Stripe-Signature, format: "t={time},v1={hex}", signed: "{time}.{body}", time: {tolerance: 5m, unit: s}}
    key: [{form: id}]
`, s.url, s.health, s.adminURL, filepath.Dir(s.file), app, canaryToken, more))
	s.start(t)
	return s
}

// sinks is all that oncegate says while it runs, and what lies on its disk. Text in
// base64, as bodies are in JSON, is there in clear too.
func (s *served) sinks(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	_, out["the metrics"] = s.probe(t, "/metrics")
	_, ready := s.probe(t, "/readyz")
	out["/readyz"] = ready
	for where, args := range map[string][]string{
		"claims ls": {"claims", "ls"}, "stats": {"stats"},
		"oncegate doctor": {"doctor"}, "oncegate check": {"check"},
	} {
		_, text, errs := runHere(t, s.env, append(args, "--config", s.file)...)
		out[where] = text + errs
	}
	for _, key := range []string{"evt_kept", "evt_failed", "evt_form"} {
		for where, args := range map[string][]string{"claims show": nil, "claims show --body": {"--body"}} {
			for _, form := range [][]string{nil, {"--json"}} {
				_, text, errs := runHere(t, s.env, append(append(append([]string{"claims", "show", key}, args...), form...), "--config", s.file)...)
				out[where] += unfolded(text) + errs
			}
		}
		out["GET /v1/events"] += s.ask(t, "/v1/events?key="+key)
		out["GET /v1/events?body=true"] += s.ask(t, "/v1/events?body=true&key="+key)
	}
	for where, path := range map[string]string{
		"GET /v1/claims": "/v1/claims", "GET /v1/stats": "/v1/stats", "GET /v1/refused": "/v1/refused", "GET /v1/openapi.json": "/v1/openapi.json",
		"a refusal of the API": "/v1/claims?" + canary("QUERY") + "=1",
	} {
		out[where] = s.ask(t, path)
	}
	for file, text := range s.files(t) {
		if strings.Contains(file, "evidence") {
			out["the files of evidence"] += unfolded(text)
		}
	}
	// Its file also has what claims were before, until that is overwritten.
	out["the table of claims"] = unfolded(dump(t, filepath.Join(filepath.Dir(s.file), "oncegate.db"), "claims"))
	out["the log"] = s.stdout.String()
	return out
}

// ask asks the operators' API, as one who may look.
func (s *served) ask(t *testing.T, path string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+s.adminURL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+canaryToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return unfolded(string(text))
}

// unfolded is a text, and what it holds in base64.
func unfolded(text string) string {
	for _, m := range regexp.MustCompile(`[A-Za-z0-9+/]{12,}=*`).FindAllString(text, -1) {
		if plain, err := base64.StdEncoding.DecodeString(m); err == nil {
			text += "\n" + string(plain)
		}
	}
	return text
}

// files is what lies in the state folder, byte for byte, but for the configuration.
func (s *served) files(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(filepath.Dir(s.file), "*"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range names {
		if name == s.file {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) { // a WAL may be gone
			t.Fatal(err)
		}
		out[filepath.Base(name)] = string(text)
	}
	return out
}

// A collector takes what OTLP exports.
type collector struct {
	*httptest.Server
	mu             sync.Mutex // guards what follows
	spans, metrics strings.Builder
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // an exporter that was cut is none of this test's
		c.mu.Lock()
		defer c.mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/traces") {
			c.spans.Write(body)
		} else {
			c.metrics.Write(body)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) said() (spans, metrics string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans.String(), c.metrics.String()
}

// What a crash prints, while canaries are in hand.
func TestCanariesInCrash(t *testing.T) {
	t.Parallel()
	app := newSlowApp(t)
	s := serveCanaries(t, app.URL, newCollector(t).URL, "record: full")
	go func() { // it gets no answer
		resp, err := http.DefaultClient.Do(full(s.url, fmt.Sprintf(`{"id":"evt_1","card":%q}`, canary("BODY")), canary, canarySecret))
		if err == nil {
			resp.Body.Close()
		}
	}()
	<-app.arrived
	s.signal(t, syscall.SIGQUIT)
	if s.code(t) == exitDone {
		t.Error("it did not crash")
	}
	if !strings.Contains(s.errs.String(), "goroutine ") {
		t.Fatalf("no dump: %s", s.errs.String())
	}
	none(t, "the dump", s.errs.String())
	none(t, "the log", s.stdout.String())
}

// What waits in the journal while the store is locked: an answer that would be in the
// claim, nothing of a request that is not kept, and with a key neither in clear. When
// it was written, it is gone from there.
func TestCanariesInJournal(t *testing.T) {
	t.Parallel()
	const key = "\nencryption_keys: [{id: k1, key: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]"
	for name, c := range map[string]struct {
		more    string
		allowed []string
	}{
		"record none":           {"record: none", []string{canary("ANSWER"), canary("LINK"), canary("TAG")}},
		"record full and a key": {"record: full" + key, []string{canary("TAG")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locked := make(chan *sql.DB, 1)
			var dir string
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				db, err := sql.Open("sqlite", filepath.Join(dir, "oncegate.db"))
				if err == nil {
					db.SetMaxOpenConns(1)
					_, err = db.Exec("PRAGMA busy_timeout = 20000; BEGIN IMMEDIATE")
				}
				if err != nil {
					t.Error(err)
				}
				locked <- db
				canaryApp(w, r)
			}))
			defer app.Close()
			s := serveCanaries(t, app.URL, newCollector(t).URL, c.more+"\nstore_timeout: 500ms")
			dir = filepath.Dir(s.file)
			body := fmt.Sprintf(`{"id":"evt_1","order":%q,"card":%q}`, canary("TAG"), canary("BODY"))
			resp, err := http.DefaultClient.Do(full(s.url, body, canary, canarySecret))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("status %d", resp.StatusCode)
			}
			journal := func() string { return unfolded(s.files(t)["settles-0.journal"]) }
			text := journal()
			none(t, "the journal", text, c.allowed...)
			for _, word := range c.allowed {
				if !strings.Contains(text, word) {
					t.Errorf("the journal lacks %s", word)
				}
			}
			db := <-locked
			if _, err := db.Exec("ROLLBACK"); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(30 * time.Second); strings.Contains(journal(), "evt_1"); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("what was written stays in the journal")
				}
			}
			if r := s.standing(t, "evt_1"); r.State != lock.StateDone {
				t.Errorf("the claim is %s", r.State)
			}
		})
	}
}

// dump is all that a table of an SQLite file holds, as bytes.
func dump(t *testing.T, file, table string) string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=query_only(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT * FROM " + table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.RawBytes)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		for i := range values {
			all.Write(*values[i].(*sql.RawBytes))
			all.WriteByte('|')
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
