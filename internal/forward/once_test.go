package forward_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/internal/forward"
)

// The app reads a whole request on a connection that has been used before, and
// closes without a word. Go's transport sends some of these twice.
func TestExactlyOneSend(t *testing.T) {
	headers := map[string][]string{
		"no key":            nil,
		"Idempotency-Key":   {"Idempotency-Key", "k1"},
		"X-Idempotency-Key": {"X-Idempotency-Key", "k1"},
	}
	for name, header := range headers {
		for _, method := range []string{"POST", "GET"} {
			for _, body := range []string{"", `{"id":"evt_1"}`, strings.Repeat("x", 300<<10)} {
				t.Run("B37 "+method+" with "+name+" is sent once", func(t *testing.T) {
					app := startRaw(t, func(c *rawConn) {
						if _, more := c.request(); more {
							c.say(ok)
						}
						c.request()
					})
					cl := client(t, app, forward.Options{})
					mustRead(t, cl, post("warm"))
					r := post(body, header...)
					r.Method = method
					_, _, err := read(t, cl, r)
					wantError(t, err, forward.Broken, true)
					if got := len(app.seen()); got != 2 {
						t.Fatalf("the app read %d requests, want the first and one more", got)
					}
					if app.connections() != 1 {
						t.Fatalf("%d connections, want the warmed one only", app.connections())
					}
				})
			}
		}
	}
}

func TestIdleClose(t *testing.T) {
	t.Run("B37 an app that closes idle connections costs nothing", func(t *testing.T) {
		closed := make(chan bool)
		app := startRaw(t, func(c *rawConn) {
			if _, more := c.request(); more {
				c.say(ok)
				c.Close() // after a keep-alive answer, as on an idle timeout
				closed <- true
			}
		})
		cl := client(t, app, forward.Options{})
		for range 200 {
			mustRead(t, cl, post("{}", "Idempotency-Key", "k"))
			<-closed
		}
		if got := len(app.seen()); got != 200 {
			t.Fatalf("the app saw %d requests, want 200", got)
		}
	})
	t.Run("B37 the app closes while the lease is being renewed", func(t *testing.T) {
		leave := make(chan bool)
		left := make(chan bool)
		var once sync.Once
		app := startRaw(t, func(c *rawConn) {
			c.request()
			c.say(ok)
			once.Do(func() { <-leave; c.Close(); close(left) })
			if _, more := c.request(); more {
				c.say(ok)
			}
		})
		cl := client(t, app, forward.Options{})
		mustRead(t, cl, post(""))
		calls := 0
		r := post("{}")
		r.BeforeFirstByte = func() error {
			if calls++; calls == 1 {
				close(leave)
				<-left
			}
			return nil
		}
		mustRead(t, cl, r)
		if calls != 2 {
			t.Fatalf("BeforeFirstByte was called %d times, want once a connection", calls)
		}
	})
	t.Run("this side closes first", func(t *testing.T) {
		gone := make(chan bool)
		app := startRaw(t, func(c *rawConn) {
			c.request()
			c.say(ok)
			c.request() // ends when the connection does
			gone <- true
		})
		cl := clientOf(t, forward.Upstream{Scheme: "http", Address: app.Addr().String(), IdleTimeout: 20 * time.Millisecond}, forward.Options{})
		mustRead(t, cl, post(""))
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			t.Fatal("the connection was kept beyond its idle time")
		}
	})
	t.Run("bytes that nobody asked for end a connection", func(t *testing.T) {
		said := make(chan bool, 1)
		app := startRaw(t, func(c *rawConn) {
			for {
				if _, more := c.request(); !more {
					return
				}
				c.say(ok)
				c.say("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
				said <- true
			}
		})
		cl := client(t, app, forward.Options{})
		for range 5 {
			if _, body := mustRead(t, cl, post("")); body != "ok" {
				t.Fatalf("got %q", body)
			}
			<-said
		}
	})
}

func TestBeforeFirstByte(t *testing.T) {
	app := startRaw(t, always(ok))
	cl := client(t, app, forward.Options{})
	over := errors.New("the lease is over")
	r := post("{}")
	r.BeforeFirstByte = func() error { return over }
	if _, _, err := read(t, cl, r); err != over {
		t.Fatalf("got %v, want the error itself", err)
	}
	if n := len(app.seen()); n != 0 {
		t.Fatalf("the app saw %d requests", n)
	}
	r.BeforeFirstByte = func() error { return nil }
	mustRead(t, cl, r)
	if app.connections() != 1 {
		t.Fatal("the unused connection was not kept")
	}
}

func TestErrors(t *testing.T) {
	refused := startRaw(t, always(ok))
	refused.Close()
	silent := startRaw(t, func(c *rawConn) { c.request(); c.request() })
	half := startRaw(t, func(c *rawConn) {
		c.request()
		c.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		c.request()
	})
	forever := startRaw(t, func(c *rawConn) {
		c.request()
		for range 1000 {
			c.say("HTTP/1.1 102 Processing\r\n\r\n")
		}
	})
	tests := []struct {
		name   string
		app    *rawApp
		change func(*forward.Request)
		kind   forward.Kind
		sent   bool
	}{
		{"refused", refused, nil, forward.Unreached, false},
		{"no answer in time", silent, nil, forward.Timeout, true},
		{"half an answer in time", half, nil, forward.Timeout, true},
		{"101 unasked", startRaw(t, always("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")), nil, forward.Upgraded, true},
		{"1xx without end", forever, nil, forward.Broken, true},
		{"not HTTP", startRaw(t, always("SSH-2.0-x\r\n\r\n")), nil, forward.Broken, true},
		{"status 0", startRaw(t, always("HTTP/1.1 000 x\r\n\r\n")), nil, forward.Broken, true},
		{"endless head", startRaw(t, always("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 300<<10))), nil, forward.Broken, true},
		{"line break in a value", silent, func(r *forward.Request) { r.Header["X-A"] = []string{"a\r\nb: c"} }, forward.Invalid, false},
		{"space in a name", silent, func(r *forward.Request) { r.Header["X A"] = []string{"a"} }, forward.Invalid, false},
		{"space in the target", silent, func(r *forward.Request) { r.Target = "/a b" }, forward.Invalid, false},
		{"line break in the host", silent, func(r *forward.Request) { r.Host = "a\r\nb" }, forward.Invalid, false},
		{"line break in the method", silent, func(r *forward.Request) { r.Method = "A\r\nB" }, forward.Invalid, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cl := client(t, tt.app, forward.Options{})
			r := post("{}")
			if tt.change != nil {
				tt.change(r)
			}
			ctx := t.Context()
			if tt.kind == forward.Timeout {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			a, err := cl.Forward(ctx, r)
			if err == nil {
				for b := make([]byte, 100); err == nil; {
					_, err = a.Body.Read(b)
				}
				a.Body.Close()
			}
			wantError(t, err, tt.kind, tt.sent)
		})
	}
	t.Run("a name that does not resolve", func(t *testing.T) {
		cl := clientOf(t, forward.Upstream{Scheme: "http", Address: "no-such-host.invalid:80"}, forward.Options{})
		_, _, err := read(t, cl, post(""))
		wantError(t, err, forward.Unreached, false)
	})
	t.Run("time over before the first byte", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), -1)
		defer cancel()
		_, err := client(t, silent, forward.Options{}).Forward(ctx, post(""))
		wantError(t, err, forward.Unreached, false)
	})
	t.Run("cut by the caller", func(t *testing.T) {
		cl := client(t, half, forward.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		a, err := cl.Forward(ctx, post(""))
		if err != nil {
			t.Fatal(err)
		}
		released := errors.New("released by an operator")
		cancel(released)
		b := make([]byte, 100)
		for err == nil {
			_, err = a.Body.Read(b)
		}
		wantError(t, err, forward.Broken, true)
		if !errors.Is(err, released) {
			t.Fatalf("got %v, want the cause", err)
		}
	})
}

func TestHTTPServerKeepsUp(t *testing.T) {
	cl := client(t, startRaw(t, always(ok)), forward.Options{MaxIdle: 2})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				if a, body, err := read(t, cl, post("{}")); err != nil || a.Status != http.StatusOK || body != "ok" {
					t.Errorf("got %v %q %v", a, body, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
