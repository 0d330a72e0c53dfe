package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/internal/admin"
	"oncegate/internal/operator"
	"oncegate/internal/shop"
	"oncegate/internal/testenv"
	"oncegate/lock"
)

// A replica is one of several that serve an app, as an operator reaches it.
type replica struct {
	served
	admin, dir string
}

// replicas starts two processes on one store. Where that is a file they share the
// folder, else each has its own.
func replicas(t *testing.T, store string) []*replica {
	t.Helper()
	app := httptest.NewServer(shop.New("whsec_test", 20*time.Millisecond))
	t.Cleanup(app.Close)
	shared, both := testenv.Dir(t), make([]*replica, 2)
	for i := range both {
		r := &replica{served: served{ended: make(chan error, 1)}, dir: testenv.Dir(t)}
		if store == "sqlite" {
			r.dir = shared
		}
		r.url = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
		r.health = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
		r.admin = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
		r.file = filepath.Join(testenv.Dir(t), "oncegate.yaml")
		writeFile(t, r.file, fmt.Sprintf(`version: 1
listen: %s
health: %s
admin: %s
state_dir: %s
upstream: %s
namespace: shop
store: %s
routes:
  stripe: {path: /stripe/webhook, provider: stripe, secrets: whsec_test, tags: {order: {json: /data/object/metadata/order_id}}}
`, r.url, r.health, r.admin, r.dir, app.URL, store))
		r.start(t)
		both[i] = r
	}
	return both
}

// What happened to order 4471? A storm of duplicates over two replicas, then one
// event found by its tag: straight in the store, by the API, and in the metrics. All
// agree to the digit, whatever the store.
func TestOrder4471(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(*testing.T) string{
		"SQLite":     func(*testing.T) string { return "sqlite" },
		"PostgreSQL": func(t *testing.T) string { p := servers.Postgres(t); return p.URL(p.Database(t)) },
		"MariaDB":    func(t *testing.T) string { m := servers.MariaDB(t); return m.URL(m.Database(t)) },
		"Redis":      func(t *testing.T) string { return testenv.Redis(t).URL },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both := replicas(t, store(t))
			const copies = 300
			storm(t, both, "evt_paid", "4471", copies)
			storm(t, both, "evt_other", "4472", 7)
			both[0].send(t, signedEvent("evt_forged", "4471", "whsec_other"), http.StatusUnauthorized)

			counted := both[0].counted(t)
			if name == "Redis" { // evidence stays with the replica
				counted.add(both[1].counted(t))
			} else {
				for _, r := range both[1:] {
					if other := r.counted(t); !counted.equal(other) {
						t.Errorf("one replica says %+v, the other %+v", counted, other)
					}
				}
			}
			if counted.sum() != copies+7 || counted.dropped != 0 {
				t.Errorf("%d deliveries are in evidence, want %d; %+v", counted.sum(), copies+7, counted)
			}
			measured := both[0].measured(t)
			measured.add(both[1].measured(t))
			if !counted.equal(measured) {
				t.Errorf("evidence says %+v, metrics say %+v", counted, measured)
			}
			words := map[string]int{}
			for _, r := range both {
				direct, byAPI := r.order(t), r.order(t, "--admin", "http://"+r.admin)
				if !maps.Equal(direct, byAPI) {
					t.Errorf("straight from the store: %v; by the API: %v", direct, byAPI)
				}
				if raw := r.orderByHTTP(t); !maps.Equal(direct, raw) {
					t.Errorf("by the command: %v; by plain HTTP: %v", direct, raw)
				}
				if words["fresh"]+words["replay"]+words["waited"] == 0 || name == "Redis" {
					for word, n := range direct {
						words[word] += n
					}
				}
			}
			if words["fresh"] != 1 || words["replay"]+words["waited"] != copies-1 || len(words) > 3 {
				t.Errorf("of %d deliveries of the event %v are told", copies, words)
			}
		})
	}
}

// signedEvent is a delivery of an event about an order, which a secret signs.
func signedEvent(event, order, secret string) func(at string) *http.Request {
	body := fmt.Sprintf(`{"id":%q,"type":"invoice.paid","data":{"object":{"object":"invoice","metadata":{"order_id":%q}}}}`, event, order)
	return func(at string) *http.Request { return stripeRequest(at, body, secret) }
}

func (r *replica) send(t *testing.T, delivery func(string) *http.Request, want int) {
	t.Helper()
	resp, err := http.DefaultClient.Do(delivery(r.served.url))
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		t.Errorf("status %d, want %d", resp.StatusCode, want)
	}
}

// storm delivers an event many times, at once and to all replicas.
func storm(t *testing.T, to []*replica, event, order string, copies int) {
	t.Helper()
	var wg sync.WaitGroup
	turn := make(chan bool, 25)
	for i := range copies {
		turn <- true
		wg.Go(func() {
			defer func() { <-turn }()
			to[i%len(to)].send(t, signedEvent(event, order, "whsec_test"), http.StatusOK)
		})
	}
	wg.Wait()
}

// A tally is how many deliveries ended with each word, and how many of them were
// duplicates.
type tally struct {
	words      map[string]int
	duplicates int
	dropped    int
}

func (c *tally) add(o tally) {
	for word, n := range o.words {
		c.words[word] += n
	}
	c.duplicates += o.duplicates
	c.dropped += o.dropped
}

func (c *tally) equal(o tally) bool {
	return maps.Equal(c.words, o.words) && c.duplicates == o.duplicates
}

func (c *tally) sum() (sum int) {
	for _, n := range c.words {
		sum += n
	}
	return sum
}

// counted is what stats says, when evidence has caught up with the metrics: straight
// from the store, and by the API, which agree.
func (r *replica) counted(t *testing.T) (c tally) {
	t.Helper()
	var last string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(1200 * time.Millisecond) {
		direct := r.asks(t, "stats", "--json")
		byAPI := r.asks(t, "stats", "--json", "--admin", "http://"+r.admin)
		if last == direct && strings.Contains(direct, `"evidence":true`) { // a second later it says the same: all is written
			if direct != byAPI {
				t.Errorf("straight from the store: %s; by the API: %s", direct, byAPI)
			}
			var s operator.Stats
			if err := json.Unmarshal([]byte(direct), &s); err != nil {
				t.Fatal(err)
			}
			c.words = map[string]int{}
			for _, route := range s.Routes {
				c.add(tally{words: route.Results, duplicates: route.Duplicates})
			}
			return c
		}
		last = direct
	}
	t.Fatal("evidence does not come to rest")
	return c
}

// measured is what the metrics say of deliveries that had an event key.
func (r *replica) measured(t *testing.T) (c tally) {
	t.Helper()
	_, text := r.probe(t, "/metrics")
	number := func(pattern string) map[string]int {
		found := map[string]int{}
		for _, m := range regexp.MustCompile(`(?m)^`+pattern+`.* (\S+)$`).FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseFloat(m[len(m)-1], 64)
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				found[m[1]] += int(n)
			}
		}
		return found
	}
	c.words = number(`oncegate_deliveries_total\{.*result="(\w+)"`)
	delete(c.words, "unverified")
	c.duplicates = number(`oncegate_(duplicates_total)`)["duplicates_total"]
	c.dropped = number(`oncegate_(evidence_dropped_total)`)["evidence_dropped_total"]
	return c
}

// asks runs a command that must succeed, and returns what it prints.
func (r *replica) asks(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := runHere(t, nil, append(args, "--config", r.file)...)
	if code != 0 {
		t.Fatalf("oncegate %s: %d %s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// order finds the event of order 4471 by its tag, and counts its deliveries by word.
func (r *replica) order(t *testing.T, more ...string) map[string]int {
	t.Helper()
	var claim operator.Claim
	if err := json.Unmarshal([]byte(r.asks(t, append([]string{"claims", "ls", "--tag", "order=4471", "--json"}, more...)...)), &claim); err != nil {
		t.Fatalf("not one claim: %v", err)
	}
	if claim.Key != "evt_paid" || claim.State != lock.StateDone.String() || claim.Attempt != 1 {
		t.Errorf("found %+v", claim)
	}
	var life operator.Life
	if err := json.Unmarshal([]byte(r.asks(t, append([]string{"claims", "show", claim.Key, "--json"}, more...)...)), &life); err != nil {
		t.Fatal(err)
	}
	return life2words(t, &life)
}

// orderByHTTP is order without the command.
func (r *replica) orderByHTTP(t *testing.T) map[string]int {
	t.Helper()
	token, err := admin.ReadToken(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string, into any) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, "http://"+r.admin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
		}
	}
	var page operator.Page
	get("/v1/claims?tag="+url.QueryEscape("order=4471"), &page)
	if len(page.Claims) != 1 {
		t.Fatalf("found %+v", page.Claims)
	}
	var events admin.Events
	get("/v1/events?key="+page.Claims[0].Key, &events)
	return life2words(t, events.Events[0])
}

// life2words counts an event's deliveries by word, and sees that they make sense.
func life2words(t *testing.T, life *operator.Life) map[string]int {
	t.Helper()
	words := map[string]int{}
	for _, m := range life.Timeline {
		words[m.Result] += m.Count
		if m.Remote != "127.0.0.1" || m.Payload == "" || m.Status != http.StatusOK || m.Duplicate == (m.Result == "fresh") {
			t.Errorf("told: %+v", m)
		}
		if m.Result == "fresh" && (m.AppStatus != 200 || m.Answer == nil || m.Answer.Kept == 0 || m.Answer.Kept != m.Answer.Size) {
			t.Errorf("told of the attempt: %+v", m)
		}
	}
	if !slices.IsSortedFunc(life.Timeline, func(a, b operator.Moment) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) }) {
		t.Error("the timeline is not in order")
	}
	return words
}
