package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"oncegate/internal/evidence"
	"oncegate/internal/evidence/sqlevidence"
	"oncegate/internal/operator"
	"oncegate/lock"
	"oncegate/lock/memlock"
)

const (
	adminToken = "0123456789abcdef0123456789abcdef"
	lookToken  = "fedcba9876543210fedcba9876543210"
)

// A rig is an API over a store with a done, an unknown and a released claim.
type rig struct {
	*httptest.Server
	desk *operator.Desk
	log  *bytes.Buffer
	keys map[string]lock.Key
	mu   sync.Mutex
	said []string // verbs that were decided
}

func newRig(t *testing.T) *rig {
	t.Helper()
	store := memlock.New()
	ev, err := sqlevidence.SQLite(filepath.Join(t.TempDir(), "evidence.db"), sqlevidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ev.Close() })
	r := &rig{log: &bytes.Buffer{}, keys: map[string]lock.Key{}}
	r.desk = &operator.Desk{
		Store: store, Catalog: store, Evidence: ev, Namespace: "shop",
		Scopes: func() []operator.Scope {
			return []operator.Scope{{Name: "stripe", Retention: time.Hour, Horizon: time.Minute}}
		},
		Decided: func(v lock.Verb, _ operator.Decision, _ operator.Outcome) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.said = append(r.said, v.String())
		},
	}
	for text, state := range map[string]lock.State{"evt_done": lock.StateDone, "evt_unknown": lock.StateUnknown, "evt_released": lock.StateReleased} {
		rec := lock.Record{
			Key: lock.KeyOf("shop", "stripe", text), Text: text, State: state, Attempt: 1, Version: lock.NewVersion(), Token: lock.NewToken(),
			Retain: time.Hour, Tags: []string{"order=" + text}, Reason: lock.ReasonAnswered, Deliveries: 1,
		}
		if state == lock.StateUnknown {
			rec.Retain = 0
		}
		if state == lock.StateDone {
			rec.AnswerStatus, rec.AnswerHeader, rec.AnswerBody = 200, []byte{1, 0, 0}, lock.Seal([]byte("thanks"))
		}
		if _, err := store.Apply(t.Context(), []lock.Change{{Next: rec, Seen: true}}); err != nil {
			t.Fatal(err)
		}
		r.keys[text] = rec.Key
		err := ev.Write(t.Context(), []evidence.Entry{{
			ID: evidence.ID([]byte(fmt.Sprintf("%-16.16s", text))), Key: rec.Key, First: time.Now(), Last: time.Now(), Count: 1, Route: "stripe", Provider: "stripe",
			Result: "fresh", Status: 200, Facts: evidence.Facts{
				Text: text, Attempt: 1, Remote: "192.0.2.1", AppStatus: 200,
				Answer: &evidence.Answer{Header: []evidence.Line{{Name: "Content-Type", Value: "text/plain"}}, Size: 6, Kept: 6, Body: []byte("thanks")},
			},
		}, {
			ID: evidence.ID([]byte(fmt.Sprintf("seen%-12.12s", text))), Key: lock.KeyOf("shop", "stripe", "seen"), First: time.Now(), Last: time.Now(), Count: 1,
			Route: "watched", Result: "observed", Status: 200, Facts: evidence.Facts{Text: "seen"},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	s := New(Options{
		Desk: r.desk, Hosts: []string{"ops.example"}, Log: slog.New(slog.NewTextHandler(r.log, nil)),
		Tokens: func() []Token {
			return []Token{{Name: "admin", Secret: adminToken}, {Name: "eye", Secret: lookToken, ReadOnly: true}}
		},
		Refused: func() []evidence.Refused {
			return []evidence.Refused{{At: time.Now().UTC(), Route: "stripe", Result: "unverified", Status: 401}}
		},
	})
	r.Server = httptest.NewServer(s.http.Handler)
	t.Cleanup(r.Close)
	return r
}

func (r *rig) client(t *testing.T) *Client {
	t.Helper()
	u, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &Client{URL: u, Token: adminToken, HTTP: r.Client()}
}

// request asks with headers given as name, value, ...
func (r *rig) request(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, r.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := r.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestWhoIsLetIn(t *testing.T) {
	r := newRig(t)
	good, eye := "Bearer "+adminToken, "Bearer "+lookToken
	decision := fmt.Sprintf(`{"verb":"done","reason":"r","claims":[{"scope":"stripe","digest":"%s","version":"%032d"}]}`, r.keys["evt_unknown"].Digest, 1)
	for _, c := range []struct {
		name, method, path, body string
		want                     int
		header                   []string
	}{
		{"no token", "GET", "/v1/claims", "", 401, nil},
		{"a wrong token", "GET", "/v1/claims", "", 401, []string{"Authorization", "Bearer " + strings.ToUpper(adminToken)}},
		{"a part of a token", "GET", "/v1/claims", "", 401, []string{"Authorization", "Bearer " + adminToken[:31]}},
		{"an empty token", "GET", "/v1/claims", "", 401, []string{"Authorization", "Bearer "}},
		{"another scheme", "GET", "/v1/claims", "", 401, []string{"Authorization", "Basic " + adminToken}},
		{"no path without a token", "GET", "/nothing", "", 401, nil},
		{"a token", "GET", "/v1/claims", "", 200, []string{"Authorization", good}},
		{"localhost", "GET", "/v1/claims", "", 200, []string{"Authorization", good, "Host", "localhost:9181"}},
		{"an IPv6 address", "GET", "/v1/claims", "", 200, []string{"Authorization", good, "Host", "[::1]:9181"}},
		{"the configured host", "GET", "/v1/claims", "", 200, []string{"Authorization", good, "Host", "ops.example"}},
		{"DNS rebinding", "GET", "/v1/claims", "", 421, []string{"Authorization", good, "Host", "attacker.example"}},
		{"a page of another origin", "GET", "/v1/claims", "", 403, []string{"Authorization", good, "Sec-Fetch-Site", "cross-site"}},
		{"a token that may look", "GET", "/v1/stats", "", 200, []string{"Authorization", eye}},
		{"a token that may look, deciding", "POST", "/v1/decisions", decision, 403, []string{"Authorization", eye}},
		{"an unknown parameter", "GET", "/v1/claims?colour=red", "", 400, []string{"Authorization", good}},
		{"a parameter twice", "GET", "/v1/claims?scope=a&scope=b", "", 400, []string{"Authorization", good}},
		{"a limit beyond bounds", "GET", "/v1/claims?limit=100000", "", 400, []string{"Authorization", good}},
		{"a forged cursor", "GET", "/v1/claims?after=e30x", "", 400, []string{"Authorization", good}},
		{"a digest that is none", "GET", "/v1/claims/stripe/xyz", "", 400, []string{"Authorization", good}},
		{"an unknown field", "POST", "/v1/decisions", `{"verb":"done","colour":1}`, 400, []string{"Authorization", good}},
		{"no reason", "POST", "/v1/decisions", strings.Replace(decision, `"r"`, `" "`, 1), 400, []string{"Authorization", good}},
		{"an unknown path", "GET", "/v1/nothing", "", 404, []string{"Authorization", good}},
		{"an event that is not known", "GET", "/v1/events?key=evt_none", "", 404, []string{"Authorization", good}},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body := r.request(t, c.method, c.path, c.body, c.header...)
			if status != c.want {
				t.Errorf("got %d %s, want %d", status, body, c.want)
			}
		})
	}
	if strings.Contains(r.log.String(), adminToken[:31]) {
		t.Error("a token is in the log")
	}
	if len(r.said) != 0 {
		t.Errorf("decided: %v", r.said)
	}
}

// The API's file names what the server answers to, and every answer of each
// endpoint is what the file says.
func TestOpenAPI(t *testing.T) {
	var file struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]struct {
					Schema json.RawMessage `json:"schema"`
				} `json:"content"`
			} `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(openAPI, &file); err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	version := func() string {
		lives, err := r.desk.ShowKey(t.Context(), "stripe", "evt_unknown", false)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := lives[0].Claim.Version.MarshalText()
		return string(text)
	}
	digest := r.keys["evt_done"].Digest.String()
	questions := map[string][]string{ // path in the file → requests
		"/v1/claims":                  {"/v1/claims", "/v1/claims?tag=order%3Devt_done", "/v1/claims?limit=1", "/v1/claims?result=fresh", "/v1/claims?result=observed", "/v1/claims?unfinished=true", "/v1/claims?state=no"},
		"/v1/claims/{scope}/{digest}": {"/v1/claims/stripe/" + digest + "?body=true", "/v1/claims/other/" + digest},
		"/v1/events":                  {"/v1/events?key=stripe:evt_unknown", "/v1/events?key=evt_done&body=true", "/v1/events?key=seen", "/v1/events"},
		"/v1/decisions": {
			fmt.Sprintf(`{"verb":"done","reason":"seen in the books","claims":[{"scope":"stripe","digest":"%s","version":"%s"}]}`, r.keys["evt_unknown"].Digest, version()),
			fmt.Sprintf(`{"verb":"done","reason":"again","claims":[{"scope":"stripe","digest":"%s","version":"%s"}]}`, r.keys["evt_unknown"].Digest, version()),
			`{}`,
		},
		"/v1/stats":        {"/v1/stats", "/v1/stats?within=7d"},
		"/v1/refused":      {"/v1/refused"},
		"/v1/openapi.json": {"/v1/openapi.json"},
	}
	served := map[string]bool{}
	for _, e := range (&Server{}).endpoints() {
		operation, ok := file.Paths[e.path][strings.ToLower(e.method)]
		if !ok {
			t.Errorf("%s %s is not in openapi.json", e.method, e.path)
			continue
		}
		served[e.path] = true
		for _, q := range questions[e.path] {
			path, body := q, ""
			if e.method == "POST" {
				path, body = e.path, q
			}
			status, text := r.request(t, e.method, path, body, "Authorization", "Bearer "+adminToken)
			answer, ok := operation.Responses[fmt.Sprint(status)]
			if !ok {
				answer = operation.Responses["default"]
			}
			for _, content := range answer.Content {
				conforms(t, path, content.Schema, text)
			}
		}
	}
	for path := range file.Paths {
		if !served[path] || len(questions[path]) == 0 {
			t.Errorf("%s is in openapi.json, and not served or not asked", path)
		}
	}
}

// conforms holds a JSON text to a schema within openapi.json.
func conforms(t *testing.T, what string, schema json.RawMessage, text string) {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	file, err := jsonschema.UnmarshalJSON(bytes.NewReader(openAPI))
	if err != nil {
		t.Fatal(err)
	}
	var at struct {
		Ref string `json:"$ref"`
	}
	if err := json.Unmarshal(schema, &at); err != nil {
		t.Fatal(err)
	}
	if at.Ref == "" {
		return // any object
	}
	if err := compiler.AddResource("openapi.json", file); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("openapi.json" + at.Ref)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v: %s", what, err, text)
	}
	if err := compiled.Validate(value); err != nil {
		t.Errorf("%s: %v\n%s", what, err, text)
	}
}

// A client gets what the desk says, values and errors.
func TestClient(t *testing.T) {
	r := newRig(t)
	c := r.client(t)
	page, err := c.Find(t.Context(), operator.Query{Tag: "order=evt_unknown", Limit: 10})
	if err != nil || len(page.Claims) != 1 || page.Claims[0].Key != "evt_unknown" {
		t.Fatalf("found %+v, %v", page, err)
	}
	var all []string
	for q := (operator.Query{Limit: 1}); ; {
		page, err := c.Find(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, claim := range page.Claims {
			all = append(all, claim.Key)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if len(all) != 3 {
		t.Errorf("page by page there are %v", all)
	}
	ref := page.Claims[0].Ref()
	outcomes, err := c.Decide(t.Context(), operator.Decision{Verb: "done", Who: "alice", Reason: "order 4471 is paid", Claims: []operator.Ref{ref}})
	if err != nil || outcomes[0].Code != "" || outcomes[0].State != "done" {
		t.Fatalf("decided %+v, %v", outcomes, err)
	}
	outcomes, err = c.Decide(t.Context(), operator.Decision{Verb: "done", Reason: "again", Claims: []operator.Ref{ref}})
	if err != nil || outcomes[0].Code != "stale" {
		t.Errorf("the same again: %+v, %v", outcomes, err)
	}
	life, err := c.Show(t.Context(), ref.Scope, ref.Digest, false)
	if err != nil {
		t.Fatal(err)
	}
	last := life.Timeline[len(life.Timeline)-1]
	if last.Kind != "decision" || last.Who != "admin for alice" || last.Why != "order 4471 is paid" || last.Result != "done" {
		t.Errorf("the decision's evidence is %+v", last)
	}
	if _, err := c.ShowKey(t.Context(), "", "evt_none", false); !isNotFound(err) {
		t.Errorf("an unknown event: %v", err)
	}
	outcomes, err = c.Decide(t.Context(), operator.Decision{Verb: "forget", Reason: "asked to", Claims: []operator.Ref{life.Claim.Ref()}})
	if err != nil || outcomes[0].Code != "" {
		t.Fatalf("forget: %+v, %v", outcomes, err)
	}
	life, err = c.Show(t.Context(), ref.Scope, ref.Digest, true)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(life)
	for _, gone := range []string{"evt_unknown", "4471", "192.0.2.1", "alice"} {
		if bytes.Contains(text, []byte(gone)) {
			t.Errorf("forgotten, and %s is still known: %s", gone, text)
		}
	}
	if s, err := c.Stats(t.Context(), 0); err != nil || s.Routes[0].Deliveries != 2 || s.Claims["stripe"]["tombstone"] != 1 {
		t.Errorf("stats %+v, %v", s, err)
	}
	if _, err := c.Decide(t.Context(), operator.Decision{Verb: "rerun", Reason: "r", Claims: []operator.Ref{ref}}); err == nil {
		t.Error("a rerun where nobody forwards")
	}
}

// What answers in the API's place, such as an app behind the public address, is
// not believed: no claims there are not no claims.
func TestClientLedElsewhere(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"received":true}`)
	}))
	defer app.Close()
	at, err := url.Parse(app.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{URL: at, Token: adminToken, HTTP: http.DefaultClient}
	if page, err := c.Find(t.Context(), operator.Query{Limit: 1}); !errors.Is(err, ErrAPI) {
		t.Errorf("an app's answer was taken for %+v, %v", page, err)
	}
	if outcomes, err := c.Decide(t.Context(), operator.Decision{Verb: "done", Reason: "r"}); !errors.Is(err, ErrAPI) {
		t.Errorf("an app's answer was taken for the decision %+v, %v", outcomes, err)
	}
}

// What is wrong with a question is said, and what was given is not.
func TestWhatIsWrong(t *testing.T) {
	r := newRig(t)
	for path, want := range map[string]string{
		"/v1/claims?limit=CANARY7":         "limit is not well formed: it must be a whole number",
		"/v1/claims?unfinished=CANARY7":    "unfinished is not well formed: it must be true or false",
		"/v1/claims?scope=a&scope=CANARY7": "scope is not well formed: it must be given once",
		"/v1/claims?CANARY7=1":             "holds a parameter that is not known",
		"/v1/claims?a=%zz":                 "the query is not well formed: it must be percent-encoded",
		"/v1/claims/stripe/CANARY7":        "must be a claim's digest",
		"/v1/claims?scope=stripe&key=":     "key is not well formed: it must not be empty",
		"/v1/claims?seen_within=0s":        "seen_within is not well formed: it must be longer",
		"/v1/events":                       "key is not well formed: it must be given",
		"/v1/stats?within=CANARY7":         "within is not well formed: it must be a duration such as",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+adminToken)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var p problemDocument
		err = json.NewDecoder(resp.Body).Decode(&p)
		_ = resp.Body.Close()
		if err != nil || p.Code != "malformed" || !strings.Contains(p.Detail, want) || strings.Contains(p.Detail, "CANARY7") {
			t.Errorf("%s: %+v, %v", path, p, err)
		}
	}
}

func isNotFound(err error) bool {
	return err != nil && (&APIError{Code: "not_found"}).Is(operator.ErrNotFound)
}

func TestOwnToken(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	got := make([]string, 8)
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = OwnToken(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, token := range got {
		if len(token) != 64 || token != got[0] {
			t.Fatalf("several processes have %q", got)
		}
	}
	info, err := os.Stat(filepath.Join(dir, TokenFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}
