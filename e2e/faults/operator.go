package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// operatorsAnswer is what deliveries get of an event that the operator has
// called done.
const operatorsAnswer = "the operator has looked: it is done\n"

// A decider is an operator who looks at the ledger and says what is true.
type decider struct {
	gates  []*gate
	ledger string

	mu      sync.Mutex // guards what follows
	decided map[string]bool
	words   int
}

// work decides what there is to decide, every second, until ctx is over.
func (d *decider) work(ctx context.Context) error {
	for turn := 0; rest(ctx, time.Second); turn++ {
		if err := d.round(ctx, d.gates[turn%len(d.gates)]); err != nil {
			return err
		}
	}
	return nil
}

// A claim is one as the operators' API shows it.
type claim struct {
	Scope   string `json:"scope"`
	Digest  string `json:"digest"`
	Version string `json:"version"`
	Key     string `json:"key,omitempty"`
	// MayRunFor is for how many seconds the app may still be working on it.
	MayRunFor *float64 `json:"may_run_for,omitempty"`
}

// round asks one gate. That it or the store is away is no error: the operator
// comes again.
func (d *decider) round(ctx context.Context, g *gate) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var page struct{ Claims []claim }
	if err := g.operate(ctx, http.MethodGet, "/v1/claims?state=unknown&limit=200", nil, &page); err != nil {
		return nil
	}
	runs, err := readLedger(d.ledger)
	if err != nil {
		return err
	}
	happened := map[string]bool{}
	for _, r := range runs {
		happened[r.Event] = happened[r.Event] || !r.Effect.IsZero()
	}
	var done, reopen []claim
	d.mu.Lock()
	for _, c := range page.Claims {
		ref := claim{Scope: c.Scope, Digest: c.Digest, Version: c.Version}
		switch {
		case happened[c.Key]:
			done = append(done, ref)
		// What may still be running when it was shown, the ledger can't deny.
		case c.MayRunFor != nil && *c.MayRunFor <= 0:
			reopen = append(reopen, ref)
		default:
			continue
		}
		d.decided[c.Key] = true
		d.words++
	}
	d.mu.Unlock()
	// What does not stand comes up again.
	if len(done) > 0 {
		_ = g.operate(ctx, http.MethodPost, "/v1/decisions", map[string]any{
			"verb": "done", "who": "faults", "reason": "the ledger has it", "body": []byte(operatorsAnswer), "claims": done,
		}, new(any))
	}
	if len(reopen) > 0 {
		_ = g.operate(ctx, http.MethodPost, "/v1/decisions", map[string]any{
			"verb": "reopen", "who": "faults", "reason": "the ledger does not have it", "claims": reopen,
		}, new(any))
	}
	return nil
}

// operate asks the gate's operators' API.
func (g *gate) operate(ctx context.Context, method, path string, body, result any) error {
	token, err := os.ReadFile(filepath.Join(g.StateDir, "admin.token"))
	if err != nil {
		return err // it never ran so far as to have made one
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, g.Admin+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(result)
}
