package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A sender that writes its whole request before it looks for the answer gets the
// answer, and no reset: nginx, in front, would make a 502 of that.
func TestEarlyAnswers(t *testing.T) {
	body := strings.Repeat(" ", 16<<20) // more than the buffers of two sockets hold
	signed := "X-Sig: " + mac(secret, body)
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
	chunks := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(body)) + body + "\r\n0\r\n\r\n"
	over := make(chan struct{})
	early := newRawApp(t, func(c *wire) {
		if _, err := http.ReadRequest(c.in); err == nil {
			c.say("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
			<-over // and takes no more
		}
	})
	t.Cleanup(func() { close(over) })
	tests := []struct {
		name, path, line, rest string
		cap                    string
		full                   bool
		status                 int
		result                 string
	}{
		{"B53 too large", "/hooks/acme", signed, length, "1MiB", false, 413, "malformed"},
		{"B53 too large, in chunks", "/hooks/acme", signed, chunks, "1MiB", false, 413, "malformed"},
		{"B18 not signed", "/hooks/acme", "X-None: 1", length, "16MiB", false, 401, "unverified"},
		{"too much in hand", "/hooks/acme", signed, length, "16MiB", true, 503, "overload"},
		{"B53 too large for the app", "/upload", signed, length, "1MiB", false, 413, ""},
		{"B53 too large for the app, in chunks", "/upload", signed, chunks, "1MiB", false, 413, ""},
	}
	for _, tt := range tests {
		for _, connection := range []string{"keep-alive", "close"} {
			t.Run(tt.name+", "+connection, func(t *testing.T) {
				r := startRig(t, early.url, newMem(), "namespace: shop\nmax_in_hand: 1\n"+acmeRoute(jsonID+"\nmax_body: "+tt.cap))
				if tt.full {
					held := r.dial()
					held.say("POST /hooks/acme HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n" + signed + "\r\n\r\n")
					r.inHand(1)
				}
				c := r.dial()
				head := "POST " + tt.path + " HTTP/1.1\r\nHost: h\r\nConnection: " + connection + "\r\n" + tt.line + "\r\n"
				if _, err := io.WriteString(c, head+tt.rest); err != nil {
					t.Errorf("the sender was cut off: %v", err)
				}
				s := c.hear(t)
				if s.status != tt.status || s.result != tt.result {
					t.Errorf("got %d %q %v", s.status, s.result, s.err)
				}
			})
		}
	}
}
