package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"oncegate/e2e/harness"
)

// publicHeaders is how a request looks that came through a load balancer.
var publicHeaders = []string{
	"Host: Pub.Example:8443",
	"X-Forwarded-For: 1.2.3.4",
	"X-Forwarded-Proto: https",
	"X-Forwarded-Host: pub.example",
	"X-Forwarded-Port: 8443",
	`Forwarded: for=1.2.3.4;proto=https`,
	"X-Real-IP: 1.2.3.4",
	"Accept: application/json",
	"Cookie: theme=dark; laravel_session=nonsense",
	"X_Underscored: dropped by nginx",
}

// TestLaravelSeesTheSame compares what the real app makes of a request that
// came straight to it with what it makes of the same request through oncegate.
func TestLaravelSeesTheSame(t *testing.T) {
	shop := harness.NewShop(t, harness.ShopOptions{})
	gate := binary.Serve(t, harness.Config{Upstream: shop.URL, Routes: harness.StripeRoute})

	for _, request := range []string{
		"GET /echo?b=2&a=1&a=%20+x HTTP/1.1",
		"GET /echo/?q HTTP/1.1",
		"POST /echo HTTP/1.1\r\nContent-Length: 0",
		"DELETE /index.php/echo HTTP/1.1",
	} {
		t.Run("B76 "+request, func(t *testing.T) {
			lines := append([]string{request}, publicHeaders...)
			direct := harness.SendRaw(shop.Addr, lines, nil)
			through := harness.SendRaw(gate.Addr(), lines, nil)
			if want, got := decodeEcho(t, direct), decodeEcho(t, through); !reflect.DeepEqual(got, want) {
				t.Errorf("through oncegate the app sees\n%v\nand without it\n%v", got, want)
			}
		})
	}

	t.Run("B76 a signed URL made on one way holds on the other", func(t *testing.T) {
		for _, way := range [][2]string{{shop.Addr, gate.Addr()}, {gate.Addr(), shop.Addr}, {gate.Addr(), gate.Addr()}} {
			var link struct{ URL string }
			made := harness.SendRaw(way[0], append([]string{"GET /link HTTP/1.1"}, publicHeaders...), nil)
			if err := json.Unmarshal(made.Body, &link); err != nil {
				t.Fatalf("%v: %v", made, err)
			}
			u, err := url.Parse(link.URL)
			if err != nil {
				t.Fatal(err)
			}
			if u.Scheme != "https" || u.Host != "pub.example:8443" {
				t.Errorf("the app made the link %s", link.URL)
			}
			used := harness.SendRaw(way[1], append([]string{"GET " + u.RequestURI() + " HTTP/1.1"}, publicHeaders...), nil)
			if !used.OK() {
				t.Errorf("a link made over %s is refused over %s: %v", way[0], way[1], used)
			}
		}
	})

	t.Run("B76 cookies are set as without oncegate", func(t *testing.T) {
		lines := append([]string{"GET / HTTP/1.1"}, publicHeaders...)
		direct, through := harness.SendRaw(shop.Addr, lines, nil), harness.SendRaw(gate.Addr(), lines, nil)
		for _, a := range []harness.Answer{direct, through} {
			for _, volatile := range []string{"Date", "Connection"} {
				a.Header.Del(volatile)
			}
			for i, cookie := range a.Header["Set-Cookie"] {
				name, _, _ := strings.Cut(cookie, "=")
				_, attributes, _ := strings.Cut(cookie, "; Max-Age")
				a.Header["Set-Cookie"][i] = name + attributes
			}
		}
		if len(direct.Header["Set-Cookie"]) < 2 {
			t.Fatalf("the app sets no cookies: %v", direct.Header)
		}
		if !maps.EqualFunc(direct.Header, through.Header, func(a, b []string) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("the answer's header through oncegate\n%v\nand without it\n%v", through.Header, direct.Header)
		}
	})
}

// decodeEcho reads an answer of /echo. What belongs to one connection only is
// left out of it.
func decodeEcho(t *testing.T, a harness.Answer) map[string]any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(a.Body, &all); err != nil || !a.OK() {
		t.Fatalf("/echo: %v: %v", a, err)
	}
	headers, ok := all["headers"].(map[string]any)
	if !ok {
		t.Fatalf("/echo: %v", a)
	}
	delete(headers, "HTTP_CONNECTION")
	return all
}

// TestChunkedToPHP delivers without a Content-Length to an app that needs one:
// FastCGI has no other way to tell a body's end.
func TestChunkedToPHP(t *testing.T) {
	shop := harness.NewShop(t, harness.ShopOptions{Work: time.Millisecond})
	for name, upstream := range map[string]string{
		"nginx":   shop.URL,
		"php-fpm": shop.FastCGI(),
	} {
		gate := binary.Serve(t, harness.Config{Upstream: upstream, Routes: harness.StripeRoute + `
  echo:
    path: /echo/delivery
    provider: stripe
    secrets: ` + harness.Secret + "\n"})

		for i, chunk := range []int{1, 100, 1 << 20} {
			t.Run(fmt.Sprintf("B54 %s gets the length of a delivery in chunks of %d", name, chunk), func(t *testing.T) {
				event := harness.NewEvent(i)
				lines := func(path string) []string {
					return []string{"POST " + path + " HTTP/1.1", "Host: shop.example", "Content-Type: application/json",
						"Stripe-Signature: " + event.Delivery().Header.Get("Stripe-Signature")}
				}
				seen := decodeEcho(t, harness.SendChunked(gate.Addr(), lines("/echo/delivery"), event.Body, chunk))
				if got, want := seen["content_length"], fmt.Sprint(len(event.Body)); got != want {
					t.Errorf("PHP saw Content-Length %v, want %v", got, want)
				}
				if got, want := seen["body_sha256"], fmt.Sprintf("%x", sha256.Sum256(event.Body)); got != want {
					t.Errorf("PHP got %v bytes of body that are not those sent", seen["body_length"])
				}
				if headers, ok := seen["headers"].(map[string]any); !ok || headers["HTTP_TRANSFER_ENCODING"] != nil {
					t.Errorf("PHP saw Transfer-Encoding: %v", seen["headers"])
				}
				// The handler checks the signature over the bytes that it gets.
				if a := harness.SendChunked(gate.Addr(), lines(harness.WebhookPath), event.Body, chunk); !a.OK() {
					t.Errorf("the webhook's handler: %v", a)
				}
			})
		}
		t.Run("B54 "+name+" gets what passes through as without oncegate", func(t *testing.T) {
			for _, body := range [][]byte{[]byte("a=b"), bytes.Repeat([]byte("0123456789"), 50_000)} {
				lines := []string{"PUT /index.php/echo HTTP/1.1", "Host: shop.example", "Content-Type: text/plain"}
				direct := decodeEcho(t, harness.SendRaw(shop.Addr, lines, body))
				through := decodeEcho(t, harness.SendRaw(gate.Addr(), lines, body))
				if direct["body_sha256"] != through["body_sha256"] || direct["content_length"] != through["content_length"] {
					t.Errorf("PHP saw %v through oncegate, and %v without it", through, direct)
				}
			}
		})
	}
}
