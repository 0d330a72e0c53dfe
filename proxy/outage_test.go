package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/internal/forward"
	"oncegate/lock"
)

// A faulty store fails as it is told.
type faulty struct {
	store
	fault atomic.Pointer[func(ctx context.Context, batch []lock.Change) error]
}

// fail makes calls fail with what f returns, before they reach the store; nil
// ends it. A read has no batch.
func (s *faulty) fail(f func(ctx context.Context, batch []lock.Change) error) {
	if f == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&f)
}

func (s *faulty) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	if f := s.fault.Load(); f != nil {
		if err := (*f)(ctx, batch); err != nil {
			return nil, err
		}
	}
	return s.store.Apply(ctx, batch)
}

func (s *faulty) Read(ctx context.Context, keys []lock.Key) ([]lock.Record, error) {
	if f := s.fault.Load(); f != nil {
		if err := (*f)(ctx, nil); err != nil {
			return nil, err
		}
	}
	return s.store.Read(ctx, keys)
}

func refused(context.Context, []lock.Change) error { return lock.ErrUnavailable }

// dropped is a store whose packets are dropped.
func dropped(ctx context.Context, _ []lock.Change) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", lock.ErrUnavailable, ctx.Err())
}

func TestStoreOutage(t *testing.T) {
	outages := map[string]func(context.Context, []lock.Change) error{"refused": refused, "dropped": dropped}
	const short = "store_timeout: 200ms\n"
	onStores(t, func(t *testing.T, open func(*testing.T) store) {
		for name, outage := range outages {
			t.Run("B36 nothing runs while the store is out, "+name, func(t *testing.T) {
				s := &faulty{store: open(t)}
				r := newRig(t, newApp(t), s, short+acmeRoute(jsonID+"\nwait: 300ms"))
				s.fail(outage)
				for i := range 3 {
					start := time.Now()
					a := r.expect(r.acme(fmt.Sprintf(`{"id":"evt_%d"}`, i)), 503, "unavailable")
					if took := time.Since(start); took > 2*time.Second {
						t.Errorf("refused after %v, with a store_timeout of 200ms", took)
					}
					if a.header.Get("Retry-After") == "" {
						t.Error("no Retry-After")
					}
				}
				// This process may have begun it, and must undo that first.
				if a := r.send(r.acme(`{"id":"evt_1"}`)); a.status != 503 {
					t.Errorf("got %d %q", a.status, a.result)
				}
				r.hits(0)
				for range 20 {
					r.expect(r.post("/pass", "{}"), 200, "")
				}
				r.hits(20)
				s.fail(nil)
				eventually(t, func() bool { return r.gate.Owed() == 0 })
				r.expect(r.acme(`{"id":"evt_1"}`), 200, "fresh")
				r.expect(r.acme(`{"id":"evt_1"}`), 200, "replay")
				r.hits(21)
			})
			t.Run("a sender that never retries is forwarded, "+name, func(t *testing.T) {
				s := &faulty{store: open(t)}
				r := newRig(t, newApp(t), s, short+acmeRoute(jsonID+"\nretries_for: 0s"))
				s.fail(outage)
				r.expect(r.acme(`{"id":"evt_1"}`), 200, "unclaimed")
				r.expect(r.post("/hooks/acme", `{"id":"evt_1"}`), 401, "unverified")
				r.expect(r.post("/hooks/acme", `{"id":"evt_1"}`, "X-Sig", mac("wrong", "x")), 401, "unverified")
				r.hits(1)
				if got := r.app.last(t); got.body != `{"id":"evt_1"}` || got.header["Oncegate-Attempt"] != nil {
					t.Errorf("the app got %v", got)
				}
			})
		}
		t.Run("B35 the answer can't be stored for a while: it is written again", func(t *testing.T) {
			s := &faulty{store: open(t)}
			r := newRig(t, newApp(t), s, acmeRoute(jsonID+"\nwait: 10s"))
			var failed atomic.Int64
			s.fail(func(_ context.Context, batch []lock.Change) error {
				if len(batch) > 0 && batch[0].Next.State == lock.StateDone && failed.Add(1) <= 3 {
					return lock.ErrUnavailable
				}
				return nil
			})
			first := r.later(r.acme(`{"id":"evt_1"}`))
			second := r.later(r.acme(`{"id":"evt_1"}`))
			results := map[string]int{}
			for _, c := range []<-chan answered{first, second} {
				a := <-c
				results[fmt.Sprint(a.status, a.result)]++
			}
			if results["200fresh"] != 1 || results["200waited"]+results["200replay"] != 1 {
				t.Errorf("they got %v", results)
			}
			r.hits(1)
		})
		t.Run("B35 the answer can't be stored in time: it goes out, and is stored later", func(t *testing.T) {
			s := &faulty{store: open(t)}
			r := newRig(t, newApp(t), s, short+acmeRoute(jsonID+"\nwait: 100ms"))
			s.fail(func(_ context.Context, batch []lock.Change) error {
				if len(batch) > 0 && batch[0].Next.State == lock.StateDone {
					return lock.ErrUnavailable
				}
				return nil
			})
			first := r.expect(r.acme(`{"id":"evt_1"}`), 200, "fresh")
			for range 2 {
				r.expect(r.acme(`{"id":"evt_1"}`), 503, "settling")
			}
			if r.gate.Owed() != 1 {
				t.Errorf("%d writes are owed, want 1", r.gate.Owed())
			}
			s.fail(nil)
			eventually(t, func() bool { return r.gate.Owed() == 0 })
			if a := r.expect(r.acme(`{"id":"evt_1"}`), 200, "replay"); a.body != first.body {
				t.Errorf("replayed is %q, want %q", a.body, first.body)
			}
			r.hits(1)
		})
	})
	t.Run("a stored answer that can't be read is refused, and the event never run again", func(t *testing.T) {
		s := &unreadable{store: newMem()}
		r := newRig(t, newApp(t), s, acmeRoute(jsonID+"\non_store_outage: forward"))
		r.expect(r.acme(`{"id":"evt_1"}`), 200, "fresh")
		r.expect(r.acme(`{"id":"evt_1"}`), 503, "unavailable")
		r.hits(1)
	})
	t.Run("B35 what this process knows to be done is not forwarded while the store is out", func(t *testing.T) {
		for name, more := range map[string]string{"plain": "", "guarded": "\nguard: {digest: body}", "batch": "\neach: /events"} {
			t.Run(name, func(t *testing.T) {
				s := &faulty{store: newMem()}
				key, body := "key: [{json: /id}]", `{"id":"evt_1"}`
				if name == "batch" {
					body = eventsOf("e1", "e2")
				}
				r := newRig(t, newApp(t), s, "store_timeout: 200ms\n"+acmeRoute(key+"\non_store_outage: forward\nwait: 20s"+more))
				arrived, release := r.app.hold(t)
				first := r.later(r.acme(body))
				<-arrived
				second := r.later(r.acme(body)) // waits for the attempt
				r.inHand(2)
				s.fail(refused)
				third := r.later(r.acme(body))
				r.inHand(3)
				release()
				if a := <-first; a.status != 200 || a.result != "fresh" {
					t.Errorf("the first: %d %q", a.status, a.result)
				}
				for _, c := range []<-chan answered{second, third} {
					if a := <-c; a.status != 503 {
						t.Errorf("a duplicate: %d %q", a.status, a.result)
					}
				}
				r.expect(r.acme(body), 503, "unavailable")
				if name == "batch" { // what is new in another one is not lost
					r.expect(r.acme(eventsOf("e1", "e3")), 200, "unclaimed")
					r.hits(2)
					return
				}
				r.hits(1)
				s.fail(nil)
				r.expect(r.acme(body), 200, "replay")
			})
		}
	})
	t.Run("the store goes out between the claim and the first byte", func(t *testing.T) {
		for policy, want := range map[string]string{"refuse": "503 unavailable 0", "forward": "200 unclaimed 1"} {
			s := &faulty{store: newMem()}
			r := newRig(t, newApp(t), s, "store_timeout: 200ms\n"+acmeRoute(jsonID+"\nlease: 1s\non_store_outage: "+policy))
			// Connecting takes longer than the lease, which then must be renewed.
			r.handler.WrapApps(func(a forward.App) forward.App { return slow{a, 1100 * time.Millisecond} })
			s.fail(func(_ context.Context, batch []lock.Change) error {
				if len(batch) > 0 && batch[0].Expect != lock.None {
					return lock.ErrUnavailable // all but the begin
				}
				return nil
			})
			a := r.send(r.acme(`{"id":"evt_1"}`))
			if got := fmt.Sprint(a.status, " ", a.result, " ", r.app.count()); got != want {
				t.Errorf("%s: got %s, want %s", policy, got, want)
			}
			s.fail(nil)
		}
	})
}

// A slow app is one that it takes a while to connect to, with a claim.
type slow struct {
	forward.App
	by time.Duration
}

func (s slow) Forward(ctx context.Context, r *forward.Request) (*forward.Answer, error) {
	if r.Header["Oncegate-Attempt"] != nil {
		time.Sleep(s.by)
	}
	return s.App.Forward(ctx, r)
}

// An unreadable store damages the answers it is asked for.
type unreadable struct{ store }

func (s *unreadable) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	results, err := s.store.Apply(ctx, batch)
	for i := range results {
		if results[i].Standing.State == lock.StateDone && results[i].Standing.Version != batch[i].Next.Version {
			results[i].Standing.AnswerHeader = []byte{99}
		}
	}
	return results, err
}

func TestOverload(t *testing.T) {
	t.Run("deliveries in hand are counted until their attempts end, also when their senders leave", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), "max_in_hand: 3\n"+acmeRoute(jsonID+"\nwait: 10s"))
		arrived, release := r.app.hold(t)
		ctx, leave := context.WithCancel(t.Context())
		var all []<-chan answered
		for i := range 3 {
			all = append(all, r.later(r.acme(fmt.Sprintf(`{"id":"evt_%d"}`, i)).WithContext(ctx)))
			<-arrived
		}
		a := r.expect(r.acme(`{"id":"evt_9"}`), 503, "overload")
		if a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		leave()
		for _, c := range all {
			<-c
		}
		r.expect(r.acme(`{"id":"evt_9"}`), 503, "overload")
		r.expect(r.post("/hooks/acme", "{}"), 401, "unverified") // a stranger takes no room
		r.hits(3)
		if n, bytes := r.handler.InHand(); n != 3 || bytes < 3*14 {
			t.Errorf("in hand are %d deliveries of %d bytes", n, bytes)
		}
		release()
		r.inHand(0)
		r.expect(r.acme(`{"id":"evt_9"}`), 200, "fresh")
	})
	t.Run("bytes in hand are counted as they come, not as they are announced", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), "max_in_hand_bytes: 1MiB\nmax_answer: 1KiB\n"+acmeRoute(jsonID+"\nmax_body: 1000KiB"))
		for range 20 {
			c := r.dial()
			c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, "x") + "\r\nContent-Length: 1000000\r\n\r\n")
		}
		r.inHand(20)
		if _, bytes := r.handler.InHand(); bytes > 20*8<<10 {
			t.Errorf("%d bytes are held for bodies that have not come", bytes)
		}
		r.expect(r.acme(`{"id":"evt_1"}`), 200, "fresh")
		arrived, release := r.app.hold(t)
		big := fmt.Sprintf(`{"id":"evt_2","x":"%s"}`, strings.Repeat("x", 500<<10))
		first := r.later(r.acme(big))
		<-arrived
		r.expect(r.acme(strings.Replace(big, "evt_2", "evt_3", 1)), 503, "overload")
		release()
		if a := <-first; a.result != "fresh" {
			t.Errorf("got %d %q", a.status, a.result)
		}
	})
	for _, chunked := range []bool{false, true} {
		t.Run(fmt.Sprintf("what its sender never sends again is streamed to the app, chunked %v", chunked), func(t *testing.T) {
			r := newRig(t, newApp(t), newMem(), "max_in_hand: 1\nmax_in_hand_bytes: 64KiB\nmax_answer: 1KiB\n"+acmeRoute(jsonID+"\nmax_body: 60KiB\nretries_for: 0s"))
			send := func(body string) {
				t.Helper()
				req := r.acme(body, "Oncegate-Event", "forged", "Expect", "100-continue")
				if chunked {
					req.Body, req.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(body))), -1
				}
				r.expect(req, 200, "unclaimed")
				got := r.app.last(t)
				if got.body != body || got.chunked != chunked || got.header["Oncegate-Event"] != nil || got.header["Expect"] != nil {
					t.Errorf("the app got %.100v", got)
				}
			}
			body := fmt.Sprintf(`{"id":"evt_1","x":"%s"}`, strings.Repeat("x", 50<<10))
			t.Run("no room for its bytes", func(t *testing.T) {
				arrived, release := r.app.hold(t)
				// A body that is in hand as far as its sender sent it.
				c := r.dial()
				c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, "x") + "\r\nContent-Length: 60000\r\n\r\n" + strings.Repeat("x", 20<<10))
				r.inHand(1)
				release()
				go func() {
					for range arrived {
					}
				}()
				send(body)
				c.Close()
				r.inHand(0)
			})
			t.Run("too many in hand", func(t *testing.T) {
				c := r.dial()
				c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, "x") + "\r\nContent-Length: 100\r\n\r\n")
				r.inHand(1)
				r.expect(r.post("/hooks/acme", "{}"), 401, "unverified")
				send(body)
				c.Close()
				r.inHand(0)
			})
		})
	}
	t.Run("what is streamed may take its time", func(t *testing.T) {
		const soon = 100 * time.Millisecond
		r := newRig(t, newApp(t), newMem(), "max_in_hand_bytes: 64KiB\nmax_answer: 1KiB\n"+acmeRoute(jsonID+"\nmax_body: 60KiB\nretries_for: 0s"))
		r.handler.SetTimes(soon, time.Minute)
		arrived, release := r.app.hold(t)
		body := fmt.Sprintf(`{"id":"evt_1","x":"%s"}`, strings.Repeat("x", 40<<10))
		first := r.later(r.acme(body))
		<-arrived
		c := r.dial()
		c.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nX-Sig: " + mac(secret, "x") + fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n", len(body)) + body[:30<<10])
		time.Sleep(3 * soon)
		c.say(body[30<<10:])
		<-arrived
		release()
		if a := c.hear(t); a.status != 200 || a.result != "unclaimed" || r.app.last(t).body != body {
			t.Errorf("got %d %q %v", a.status, a.result, a.err)
		}
		<-first
	})
	t.Run("what is streamed goes on when its sender leaves", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), "max_in_hand: 1\n"+acmeRoute(jsonID+"\nretries_for: 0s"))
		arrived, release := r.app.hold(t)
		first := r.later(r.acme(`{"id":"evt_1"}`))
		<-arrived
		ended := make(chan error, 1)
		r.app.answer(func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.CopyN(w, zeros{}, 50<<20)
			ended <- err
		})
		ctx, leave := context.WithCancel(t.Context())
		resp, err := sender.RoundTrip(r.acme(`{"id":"evt_2"}`).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		leave()
		resp.Body.Close()
		if err := <-ended; err != nil {
			t.Errorf("the app was not heard to its end: %v", err)
		}
		release()
		<-first
	})
	t.Run("B69 what passes through minds nothing that is in hand", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), "max_in_hand: 50\n"+acmeRoute(jsonID+"\nwait: 10s"))
		arrived, release := r.app.hold(t)
		var all []<-chan answered
		for i := range 50 {
			all = append(all, r.later(r.acme(fmt.Sprintf(`{"id":"evt_%d"}`, i))))
			<-arrived
		}
		r.expect(r.acme(`{"id":"evt_x"}`), 503, "overload")
		release()
		r.expect(r.post("/pass", "{}"), 200, "")
		for _, c := range all {
			if a := <-c; a.result != "fresh" {
				t.Errorf("got %d %q", a.status, a.result)
			}
		}
		if n := r.counts(`oncegate_deliveries_total{result="overload",route="acme"}`); n != "1" {
			t.Errorf("%s were counted", n)
		}
	})
}
