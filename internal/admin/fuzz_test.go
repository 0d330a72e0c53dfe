package admin

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oncegate/internal/evidence"
	"oncegate/internal/operator"
	"oncegate/lock/memlock"
)

// Whatever the holder of a token asks, the answer is JSON, no failure of ours,
// and what is refused has a code of the file's.
func FuzzAPI(f *testing.F) {
	store := memlock.New()
	desk := &operator.Desk{Store: store, Catalog: store, Namespace: "shop", Scopes: func() []operator.Scope { return nil }}
	s := New(Options{
		Desk: desk, Log: slog.New(slog.DiscardHandler), Refused: func() []evidence.Refused { return nil },
		Tokens: func() []Token { return []Token{{Name: "admin", Secret: adminToken}} },
	})
	for _, seed := range [][3]string{
		{"claims?tag=a%3Db&limit=5&after=eyJGaWx0ZXIiOjB9", "", "localhost"},
		{"claims/stripe/" + strings.Repeat("0", 64) + "?body=true", "", "[::1]:9"},
		{"claims/..%2F/x", "", "127.0.0.1"},
		{"events?key=a:b&scope=%00", "", "localhost"},
		{"stats?within=9999999d", "", "localhost"},
		{"", `{"verb":"done","reason":"r","claims":[{"scope":"s","digest":"` + strings.Repeat("0", 64) + `","version":"` + strings.Repeat("0", 32) + `"}]}`, "localhost"},
		{"", `{"verb":"forget","reason":"r","now":true,"claims":[{}]}`, "localhost"},
		{"", `[`, "evil.example"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, path, body, host string) {
		method := http.MethodGet
		if body != "" {
			method, path = http.MethodPost, "decisions"
		}
		r, err := http.NewRequest(method, "http://localhost/v1/"+path, strings.NewReader(body))
		if err != nil {
			return // no request
		}
		r.Host = host
		r.Header.Set("Authorization", "Bearer "+adminToken)
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, r)
		if w.Code >= 300 && w.Code < 400 {
			return // the path was not clean
		}
		var p problemDocument
		if err := json.Unmarshal(w.Body.Bytes(), &p); w.Code != http.StatusOK && (err != nil || p.Code == "" || p.Code == "failed") {
			t.Errorf("%s %q with %q: %d %s", method, path, body, w.Code, w.Body)
		}
	})
}
