package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver that dumps are read with

	"oncegate/internal/admin"
)

// B72 What a delivery and its answer hold gets into no log, metric, evidence or
// dump beyond what record allows; and what is forgotten is gone from all of them.
func TestCanaries(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Set-Cookie", "CANARY-SET-COOKIE")
		w.Header().Set("X-App", "CANARY-APP-HEADER")
		_, _ = io.WriteString(w, "CANARY-ANSWER")
	}))
	defer app.Close()
	for record, allowed := range map[string][]string{
		"none":      {"CANARY-ANSWER"},
		"unsettled": {"CANARY-ANSWER"},
		"headers":   {"CANARY-ANSWER", "CANARY-HEADER", "CANARY-QUERY", "CANARY-AGENT", "CANARY-TRACE"},
		"full":      {"CANARY-ANSWER", "CANARY-HEADER", "CANARY-QUERY", "CANARY-AGENT", "CANARY-TRACE", "CANARY-BODY"},
	} {
		t.Run("record "+record, func(t *testing.T) {
			s := serveProcess(t, app.URL, "log_level: debug\nredact: [X-Api-Key]\nrecord: "+record)
			dir := filepath.Dir(s.file)
			s.canary(t, "evt_kept", "whsec_test", http.StatusOK)
			s.canary(t, "evt_kept", "whsec_test", http.StatusOK)
			s.canary(t, "evt_forged", "whsec_other", http.StatusUnauthorized)
			s.evidenced(t, "evt_kept", 2)
			said := map[string]string{}
			_, said["the metrics"] = s.probe(t, "/metrics")
			for _, args := range [][]string{{"ls"}, {"show", "evt_kept"}} {
				_, out, errs := runHere(t, nil, append(append([]string{"claims"}, args...), "--json", "--config", s.file)...)
				said["claims "+args[0]] = out + errs
			}
			said["the dump of evidence"] = dump(t, filepath.Join(dir, "oncegate-evidence.db"), "oncegate_evidence")
			if !strings.Contains(said["the dump of evidence"], "evt_kept") || strings.Contains(said["the dump of evidence"], "evt_forged") {
				t.Errorf("evidence is of the wrong events: %s", said["the dump of evidence"])
			}
			claims := dump(t, filepath.Join(dir, "oncegate.db"), "claims")
			for _, word := range allowed {
				if !strings.Contains(claims, word) {
					t.Errorf("the dump of claims lacks %s, which record: %s keeps", word, record)
				}
				claims = strings.ReplaceAll(claims, word, "")
			}
			said["the dump of claims"] = claims

			code, out, errs := runHere(t, nil, "claims", "forget", "evt_kept", "--reason", "a person asked", "--config", s.file)
			if code != 0 {
				t.Fatalf("forget: %d %s %s", code, out, errs)
			}
			s.signal(t, syscall.SIGTERM)
			s.code(t)
			gone := dump(t, filepath.Join(dir, "oncegate.db"), "claims") + dump(t, filepath.Join(dir, "oncegate-evidence.db"), "oncegate_evidence")
			if strings.Contains(gone, "CANARY") || strings.Contains(gone, "evt_kept") {
				t.Errorf("forgotten, and still there: %s", gone)
			}
			said["the log"] = s.stdout.String() + s.errs.String()
			token, err := admin.ReadToken(dir)
			if err != nil {
				t.Fatal(err)
			}
			for where, text := range said {
				for _, secret := range []string{"CANARY", "whsec_", token} {
					if i := strings.Index(text, secret); i >= 0 {
						t.Errorf("in %s: %s", where, text[max(0, i-100):min(len(text), i+60)])
					}
				}
			}
		})
	}
}

// canary sends a delivery full of canaries.
func (s *served) canary(t *testing.T, event, secret string, want int) {
	t.Helper()
	body := fmt.Sprintf(`{"id":%q,"type":"invoice.paid","card":"CANARY-BODY"}`, event)
	req := stripeRequest(s.url, body, secret)
	req.URL.RawQuery = "token=CANARY-QUERY"
	for name, value := range map[string]string{
		"Cookie": "s=CANARY-COOKIE", "Authorization": "Bearer CANARY-AUTHORIZATION", "X-Api-Key": "CANARY-REDACTED",
		"X-Plain": "CANARY-HEADER", "User-Agent": "CANARY-AGENT", "Traceparent": "CANARY-TRACE",
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		t.Fatalf("%s: status %d, want %d", event, resp.StatusCode, want)
	}
}

// stripeRequest is a delivery to a host's webhook, as Stripe signs it.
func stripeRequest(host, body, secret string) *http.Request {
	at := time.Now().Unix()
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at, body)
	req := httptest.NewRequest(http.MethodPost, "http://"+host+"/stripe/webhook", strings.NewReader(body))
	req.RequestURI = "" // it is a client's
	req.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", at, hex.EncodeToString(mac.Sum(nil))))
	return req
}

// evidenced waits until the evidence of an event stands for so many deliveries.
func (s *served) evidenced(t *testing.T, event string, deliveries int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		code, out, _ := runHere(t, nil, "stats", "--json", "--config", s.file)
		if code == 0 && strings.Contains(out, fmt.Sprintf(`"deliveries":%d,`, deliveries)) {
			return
		}
	}
	t.Fatalf("there is no evidence of %d deliveries of %s", deliveries, event)
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
