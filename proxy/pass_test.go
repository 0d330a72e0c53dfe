package proxy

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/internal/forward"
	"oncegate/internal/telemetry"
)

// sortedLines splits a request into its first line, sorted header lines and body.
func sortedLines(request string) (first string, header []string, body string) {
	head, body, _ := strings.Cut(request, "\r\n\r\n")
	first, rest, _ := strings.Cut(head, "\r\n")
	header = strings.Split(rest, "\r\n")
	slices.Sort(header)
	return first, header, body
}

func TestPassUntouched(t *testing.T) {
	world := startPass(t, sayAlways(okAnswer))
	same := []string{ // case, request
		"B48: GET /a%2Fb/%2e%2e/c HTTP/1.1\nHost: h",
		"B48: GET //x HTTP/1.1\nHost: h",
		"B48: GET /x//y HTTP/1.1\nHost: h",
		"B48: GET /caf%C3%A9?q=a;b&c=%zz&d HTTP/1.1\nHost: h",
		"B48: GET /a;b=c? HTTP/1.1\nHost: h",
		"B48: GET /x/../y#z HTTP/1.1\nHost: h",
		"B48: GET /caf\xc3\xa9|{}\"^`\\ HTTP/1.1\nHost: h",
		"B48: GET http://h/a//b HTTP/1.1\nHost: h",
		"B48: OPTIONS * HTTP/1.1\nHost: h",
		"B76: GET / HTTP/1.1\nHost: Pub.Example:8443\nX-Forwarded-For: 1.2.3.4, 5.6.7.8\nX-Forwarded-For: 9.9.9.9\nX-Forwarded-Proto: https\nX-Forwarded-Host: a\nForwarded: for=1.2.3.4\nX-Real-Ip: 1.2.3.4",
		"B76: POST / HTTP/1.1\nHost: h\nUser-Agent: \nAccept-Encoding: br\nContent-Length: 0",
		"B76: GET / HTTP/1.1\nHost: h\nContent-Length: 0",
		"B76: DELETE / HTTP/1.1\nHost: h",
		"B76: PURGE /x HTTP/1.1\nHost: h\nContent-Length: 0",
		"B76: GET / HTTP/1.1\nHost: h\nTe: trailers",
		"B76: POST / HTTP/1.1\nHost: h\nContent-Length: 3\nCookie: a=1\nCookie: b=2\nX-Latin: caf\xe9\n\nabc",
		"B54: POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n3\r\nabc\r\n0\r\n\r\n",
		"B54: POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n0\r\n\r\n",
		"B76: POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\nTrailer: X-Sum\n\n3\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n",
		"B76: POST / HTTP/1.1\nHost: h\nIdempotency-Key: k\nContent-Length: 0",
	}
	for _, request := range same {
		id, raw, _ := strings.Cut(request, ": ")
		t.Run(id+" "+strings.ReplaceAll(raw, "\n", " "), func(t *testing.T) {
			head, body, _ := strings.Cut(raw, "\n\n")
			raw := strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n" + body
			before := len(world.seen())
			c := world.dial(t)
			c.say(raw)
			if resp, b := c.answer(t, "GET"); resp.StatusCode != 200 || b != "ok" {
				t.Fatalf("got %d %q", resp.StatusCode, b)
			}
			wantFirst, wantHeader, wantBody := sortedLines(raw)
			first, header, got := sortedLines(world.seen()[before])
			if first != wantFirst || !slices.Equal(header, wantHeader) || got != wantBody {
				t.Fatalf("the app got\n%q\n%q\n%q\nwant\n%q\n%q\n%q", first, header, got, wantFirst, wantHeader, wantBody)
			}
		})
	}
}

func TestPassTakesAway(t *testing.T) {
	world := startPass(t, sayAlways(okAnswer))
	tests := []struct{ name, send, want string }{
		{"B46 h2c", "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
		{"B46 h2c beside websocket", "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
		{"B46 h2c on a second line", "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
		{"B45 what Connection names, an empty first line", "GET / HTTP/1.1\r\nHost: h\r\nConnection:\r\nConnection: X-A, X-Forwarded-For\r\nX-A: 1\r\nX-Forwarded-For: 1.2.3.4\r\nX-B: 1\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nX-B: 1\r\n\r\n"},
		{"B45 Connection: Content-Length", "POST / HTTP/1.1\r\nHost: h\r\nConnection: Content-Length\r\nContent-Length: 3\r\n\r\nabc", "POST / HTTP/1.1\r\nContent-Length: 3\r\nHost: h\r\n\r\nabc"},
		{"oncegate's own names", "GET / HTTP/1.1\r\nHost: h\r\nOncegate-Event: a\r\noncegate_attempt: 1\r\nOncegate.Event: b\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
		{"oncegate's own names in trailers", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: Oncegate-Event, X-Sum\r\n\r\n3\r\nabc\r\n0\r\nOncegate-Event: a\r\nOncegate-Attempt: 1\r\nX-Sum: 9\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n"},
		{"a framing that says two things", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(world.seen())
			c := world.dial(t)
			c.say(tt.send)
			c.answer(t, "GET")
			first, header, body := sortedLines(world.seen()[before])
			if got := first + "\r\n" + strings.Join(header, "\r\n") + "\r\n\r\n" + body; got != tt.want {
				t.Fatalf("the app got %q\nwant %q", got, tt.want)
			}
		})
	}
	for _, target := range []string{"http:/stripe/webhook", "x:stripe/webhook", "ftp://h/stripe/webhook", "*"} {
		t.Run("B48 "+target+" goes nowhere", func(t *testing.T) {
			before := len(world.seen())
			c := world.dial(t)
			c.say("POST " + target + " HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
			if resp, _ := c.answer(t, "POST"); resp.StatusCode != 400 {
				t.Fatalf("got %d, want 400", resp.StatusCode)
			}
			if len(world.seen()) != before {
				t.Fatal("the app saw it")
			}
		})
	}
	t.Run("CONNECT goes nowhere", func(t *testing.T) {
		c := world.dial(t)
		c.say("CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n")
		if resp, _ := c.answer(t, "GET"); resp.StatusCode != 400 {
			t.Fatalf("got %d", resp.StatusCode)
		}
	})
}

func TestPassAnswers(t *testing.T) {
	t.Run("nothing is added, line for line", func(t *testing.T) {
		const answer = "HTTP/1.1 203 Non-Authoritative Information\r\nContent-Length: 5\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\n<htm>"
		c := startPass(t, sayAlways(answer)).dial(t)
		c.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if got := c.until(t, "<htm>"); got != answer {
			t.Fatalf("got %q", got)
		}
	})
	t.Run("1xx, then nothing added either", func(t *testing.T) {
		c := startPass(t, sayAlways("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"+okAnswer)).dial(t)
		c.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if got, want := c.until(t, "ok"), "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"+okAnswer; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
	t.Run("trailers, announced or not", func(t *testing.T) {
		c := startPass(t, sayAlways("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 9\r\nX-More: 1\r\n\r\n")).dial(t)
		c.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if resp, body := c.answer(t, "GET"); body != "ok" || resp.Trailer.Get("X-Sum") != "9" || resp.Trailer.Get("X-More") != "1" {
			t.Fatalf("got %q, trailers %v", body, resp.Trailer)
		}
	})
	t.Run("events leave at once", func(t *testing.T) {
		heard := make(chan bool)
		c := startPass(t, func(c *appConn) {
			c.request()
			c.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
			for range 3 {
				c.say("9\r\ndata: 1\n\n\r\n")
				<-heard
			}
			c.say("0\r\n\r\n")
		}).dial(t)
		c.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		for range 3 {
			c.until(t, "data: 1\n\n")
			heard <- true
		}
		c.until(t, "0\r\n\r\n")
	})
	t.Run("the app answers while it is still being asked", func(t *testing.T) {
		c := startPass(t, func(c *appConn) {
			c.in.ReadString('\n')
			c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
			io.Copy(io.Discard, c.in)
		}).dial(t)
		c.say("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
		c.until(t, "hi\r\n")
	})
	t.Run("Expect: 100-continue is the app's to answer", func(t *testing.T) {
		c := startPass(t, sayAlways("")).dial(t)
		c.say("PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
		c.until(t, "100 Continue\r\n\r\n") // after a while, though this app says nothing
		world := startPass(t, func(c *appConn) {
			for line := ""; line != "\r\n"; {
				line, _ = c.in.ReadString('\n')
			}
			c.say("HTTP/1.1 417 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		})
		c = world.dial(t)
		c.say("PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
		if got := c.until(t, "\r\n"); got != "HTTP/1.1 417 Expectation Failed\r\n" {
			t.Fatalf("got %q", got)
		}
	})
}

func TestPassIsSentOnce(t *testing.T) {
	for name, request := range map[string]string{
		"a keyed POST":                    "POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}",
		"a keyed POST without a body":     "POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n",
		"an X-keyed POST without a body":  "POST / HTTP/1.1\r\nHost: h\r\nX-Idempotency-Key: k\r\nContent-Length: 0\r\n\r\n",
		"a keyed POST without any length": "POST / HTTP/1.1\r\nHost: h\r\nX-Idempotency-Key: k\r\n\r\n",
		"a GET":                           "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
	} {
		t.Run("B37 "+name, func(t *testing.T) {
			world := startPass(t, func(c *appConn) {
				if _, more := c.request(); more {
					c.say(okAnswer)
				}
				c.request()
			})
			c := world.dial(t)
			c.say("GET /warm HTTP/1.1\r\nHost: h\r\n\r\n")
			c.answer(t, "GET")
			c.say(request)
			resp, body := c.answer(t, "POST")
			if resp.StatusCode != 502 || resp.Header.Get("Content-Type") != "application/problem+json" {
				t.Fatalf("got %d %q", resp.StatusCode, body)
			}
			if n := len(world.seen()); n != 2 {
				t.Fatalf("the app read %d requests, want the first and one more", n)
			}
			if r := world.reports(); len(r) != 1 || rowOf(r[0]).word != telemetry.ResultUnknown {
				t.Fatalf("reported: %v", r)
			}
		})
	}
}

func TestPassPartialAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"a length": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 40),
		"chunks":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	} {
		t.Run("B43 "+name, func(t *testing.T) {
			world := startPass(t, func(c *appConn) { c.request(); c.say(answer) })
			c := world.dial(t)
			c.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			resp, err := http.ReadResponse(c.in, nil)
			if err == nil { // else not even the head had left
				var b []byte
				if b, err = io.ReadAll(resp.Body); err == nil {
					t.Fatalf("the client took %q for complete", b)
				}
			}
			if r := world.reports(); len(r) != 1 {
				t.Fatalf("reported: %v, want once", r)
			}
			if s := world.errors.String(); s != "" {
				t.Fatalf("the server logged %q", s)
			}
		})
	}
}

func TestPassUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	app, err := forward.New(forward.Upstream{Scheme: "http", Address: l.Addr().String()}, forward.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	world := startPass(t, sayAlways(okAnswer))
	world.pass.proxy.Transport = app
	c := world.dial(t)
	c.say("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}")
	resp, body := c.answer(t, "POST")
	var problem struct {
		Type, Result string
		Status       int
	}
	if err := json.Unmarshal([]byte(body), &problem); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 502 || problem.Status != 502 || problem.Type != "about:blank" || problem.Result != "unreached" {
		t.Fatalf("got %d %s", resp.StatusCode, body)
	}
	if r := world.reports(); len(r) != 1 || rowOf(r[0]).word != telemetry.ResultUnreached {
		t.Fatalf("reported: %v", r)
	}
	// The body was not read: the server must not come upon it as the next request.
	c.say("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}")
	if b, err := io.ReadAll(c.in); len(b) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("heard %q, %v, want the end of the connection", b, err)
	}
	if s := world.errors.String(); s != "" {
		t.Errorf("the server logged %q", s)
	}
}

func TestPassClientLeaves(t *testing.T) {
	tests := []struct{ name, send string }{
		{"B34 while the app works", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
		{"B34 after a body", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"},
		{"B53 in the middle of a body", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200\r\n\r\n{}"},
		{"B53 in the middle of a chunked body", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			arrived, left := make(chan bool), make(chan bool)
			world := startPass(t, func(c *appConn) {
				for line := ""; line != "\r\n"; {
					line, _ = c.in.ReadString('\n')
				}
				arrived <- true
				io.Copy(io.Discard, c.in)
				close(left)
			})
			c := world.dial(t)
			c.say(tt.send)
			<-arrived
			c.Close()
			select {
			case <-left:
			case <-time.After(10 * time.Second):
				t.Fatal("the app's request goes on")
			}
			if n := len(world.seen()); n != 0 {
				t.Fatal("the app saw a whole request")
			}
		})
	}
}

func TestPassWebSocket(t *testing.T) {
	const ask = "GET /socket HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: a\r\n\r\n"
	echo := func(c *appConn) {
		c.request()
		c.say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
		io.Copy(c, c.in)
		c.say("bye")
	}
	t.Run("B51 both ways, and half closed", func(t *testing.T) {
		world := startPass(t, echo)
		c := world.dial(t)
		c.say(ask)
		c.until(t, "\r\n\r\nhello")
		for range 3 {
			c.say("\x81\x05ping\xff")
			c.until(t, "\x81\x05ping\xff")
		}
		c.Conn.(*net.TCPConn).CloseWrite()
		c.until(t, "bye")
		if _, err := c.in.ReadByte(); err != io.EOF {
			t.Fatalf("after the end: %v", err)
		}
		_, header, _ := sortedLines(world.seen()[0])
		if !slices.Contains(header, "Upgrade: WebSocket") || !slices.Contains(header, "Connection: Upgrade") {
			t.Fatalf("the app got %q", header)
		}
	})
	t.Run("B51 ends when draining is over", func(t *testing.T) {
		world := startPass(t, echo)
		c := world.dial(t)
		c.say(ask)
		c.until(t, "hello")
		world.pass.closeTunnels()
		if b, err := io.ReadAll(c.in); err != nil && len(b) > len("bye") {
			t.Fatalf("got %q, %v", b, err)
		}
	})
	t.Run("B46 a 101 that nobody asked for", func(t *testing.T) {
		world := startPass(t, sayAlways("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"))
		for _, ask := range []string{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", ask} {
			c := world.dial(t)
			c.say(ask)
			if resp, _ := c.answer(t, "GET"); resp.StatusCode != 502 {
				t.Fatalf("got %d, want 502", resp.StatusCode)
			}
		}
	})
}

// Two gibibytes go through, both ways, and leave the heap as it was.
func TestPassLargeBodies(t *testing.T) {
	const size = 2 << 30
	world := startPass(t, func(c *appConn) {
		for line := ""; line != "\r\n"; {
			line, _ = c.in.ReadString('\n')
		}
		if n, _ := io.CopyN(io.Discard, c.in, size); n != size {
			return
		}
		c.say("HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n")
		io.CopyN(c, zeros{}, size)
	})
	c := world.dial(t)
	c.SetDeadline(time.Now().Add(2 * time.Minute))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.say("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2147483648\r\n\r\n")
	if _, err := io.CopyN(c, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	c.until(t, "\r\n\r\n")
	if n, err := io.CopyN(io.Discard, c.in, size); n != size {
		t.Fatalf("%d bytes came back: %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 32<<20 {
		t.Fatalf("the process grew by %d MiB", grown>>20)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
