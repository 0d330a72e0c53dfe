package forward_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/internal/forward"
	"oncegate/internal/testenv"
)

// frontController is the app of these tests. What it does is said in the query.
const frontController = `<?php
switch ($_GET['do'] ?? '') {
case 'status': http_response_code((int) $_GET['s']); exit('body');
case 'redirect': header('Location: /x'); exit;
case 'cookies': setcookie('a', '1'); setcookie('b', '2'); exit('ok');
case 'length': header('Content-Length: ' . $_GET['n']); exit(str_repeat('x', 40));
case 'exit': echo 'ok'; exit(7);
case 'unread': exit('unread');
case 'complain': for ($i = 0; $i < 400; $i++) error_log(str_repeat('x', 1000), 4); exit('ok');
case 'die': echo str_repeat('x', 100); ob_flush(); flush(); exec('kill -9 ' . getmypid()); sleep(5);
case 'never': exec('kill -9 ' . getmypid()); sleep(5);
case 'stream':
	echo 'first'; ob_flush(); flush();
	for ($i = 0; $i < 1000 && !file_exists(__DIR__ . '/go'); $i++) { usleep(10000); clearstatcache(); }
	exit($i < 1000 ? 'second' : 'late');
case 'echo': $in = file_get_contents('php://input'); header('X-Length: ' . strlen($in)); exit($in);
}
header('Content-Type: application/json');
echo json_encode(['server' => $_SERVER, 'dir' => __DIR__, 'body' => base64_encode(file_get_contents('php://input'))], JSON_INVALID_UTF8_SUBSTITUTE);
`

type phpSaw struct {
	Server map[string]any
	Dir    string
	Body   []byte
}

func startPHP(t *testing.T, children int) (root string, fpm *testenv.PHPFPMServer) {
	t.Helper()
	root = testenv.Dir(t)
	writeFile(t, root+"/index.php", frontController)
	return root, testenv.PHPFPM(t, testenv.Pool{Children: children})
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func php(t *testing.T, socket, root string, idle time.Duration, o forward.Options) forward.App {
	t.Helper()
	return clientOf(t, forward.Upstream{Scheme: "fcgi", Address: socket, Root: root, IdleTimeout: idle}, o)
}

func do(what, body string) *forward.Request {
	r := post(body)
	r.Target = "/hook?do=" + what
	return r
}

// The same requests through nginx and straight to PHP-FPM look the same to PHP.
func TestFastCGILooksLikeNginx(t *testing.T) {
	root, fpm := startPHP(t, 2)
	nginx := testenv.Nginx(t, func(listen, _ string) string {
		return fmt.Sprintf(`server {
			listen %s; server_name shop.example; root %s; index index.php;
			location / { try_files $uri $uri/ /index.php?$query_string; }
			location ~ \.php$ { include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME $realpath_root$fastcgi_script_name; fastcgi_param HTTP_HOST $http_host; fastcgi_pass unix:%s; }
		}`, listen, root, fpm.Socket)
	})
	cl := php(t, fpm.Socket, root, 0, forward.Options{})
	differ := []string{
		"SERVER_SOFTWARE", "SERVER_NAME", "SERVER_PORT", "REMOTE_PORT", "REQUEST_TIME", "REQUEST_TIME_FLOAT",
		"REMOTE_USER",       // nginx sends it empty where nobody logged in to nginx
		"HTTP_CONNECTION",   // belongs to nginx's own connection
		"HTTP_CONTENT_TYPE", // said by CONTENT_TYPE where empty
	}
	for _, raw := range []string{
		"POST /stripe/webhook?a=1;b&c=%zz HTTP/1.1\nHost: Shop.Example:8443\nStripe-Signature: t=1,v1=a\nContent-Type: application/json; charset=utf-8\nContent-Length: 13\n\n{\"id\":\"evt\"}\n",
		"POST / HTTP/1.1\nHost: shop.example\nContent-Length: 0\nUser-Agent: Stripe/1.0\nCookie: a=1; b=2\nX-Forwarded-For: 1.2.3.4\nX-Forwarded-Proto: https",
		"GET /caf%C3%A9/%2e%2e//x/?q=%00 HTTP/1.1\nHost: shop.example\nAuthorization: Basic YTpi",
		"GET http://shop.example/abs?x HTTP/1.1\nHost: shop.example",
		"GET http://shop.example?x HTTP/1.1\nHost: shop.example",
		"PUT /x HTTP/1.1\nHost: shop.example\nContent-Length: 3\nProxy-: a\nX_Under: a\nX.Dot: a\n\nabc",
		"GET / HTTP/1.1\nHost: shop.example\nX-Long: " + strings.Repeat("v", 300),
	} {
		t.Run(strings.ReplaceAll(raw[:min(len(raw), 60)], "\n", " "), func(t *testing.T) {
			head, body, _ := strings.Cut(raw, "\n\n")
			lines := strings.Split(head, "\n")
			first := strings.Fields(lines[0])
			r := &forward.Request{Method: first[0], Target: first[1], Header: http.Header{}, Body: []byte(body), Remote: "127.0.0.1:1234"}
			for _, line := range lines[1:] {
				name, value, _ := strings.Cut(line, ": ")
				if name == "Host" {
					r.Host = value
				} else {
					r.Header.Add(name, value)
				}
			}
			want := throughNginx(t, nginx.Addr, strings.ReplaceAll(head, "\n", "\r\n")+"\r\nConnection: close\r\n\r\n"+body)
			_, answer := mustRead(t, cl, r)
			got := parseSaw(t, answer)
			for _, name := range differ {
				delete(want.Server, name)
				delete(got.Server, name)
			}
			for _, name := range slices.Sorted(maps.Keys(merged(want.Server, got.Server))) {
				if g, w := fmt.Sprint(got.Server[name]), fmt.Sprint(want.Server[name]); g != w {
					t.Errorf("%s: got %q, nginx says %q", name, g, w)
				}
			}
			if !bytes.Equal(got.Body, want.Body) || string(got.Body) != body {
				t.Errorf("body: got %q, want %q", got.Body, body)
			}
		})
	}
}

func merged(a, b map[string]any) map[string]any {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

func throughNginx(t *testing.T, addr, raw string) phpSaw {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, raw)
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	i, j := bytes.IndexByte(b, '{'), bytes.LastIndexByte(b, '}')
	if i < 0 || j < 0 {
		t.Fatalf("nginx said %q", b)
	}
	return parseSaw(t, string(b[i:j+1]))
}

func parseSaw(t *testing.T, answer string) phpSaw {
	t.Helper()
	var saw phpSaw
	if err := json.Unmarshal([]byte(answer), &saw); err != nil {
		t.Fatalf("%v in %q", err, answer)
	}
	return saw
}

func TestFastCGINames(t *testing.T) {
	root, fpm := startPHP(t, 1)
	cl := php(t, fpm.Socket, root, 0, forward.Options{})
	r := post("{}")
	r.Target = "/../../etc/passwd%00.php/index.php/x.php?y"
	r.Header = http.Header{
		"Proxy": {"http://evil"}, "X_Under": {"1"}, "X.dot": {"1"}, "Oncegate_event": {"evil"}, "Oncegate-Event": {"stripe:evt_1"}, "X-Ok": {"1", "2"},
		"Connection": {"X"}, "Transfer-Encoding": {"chunked"}, "Content-Length": {"999"}, "Content-Type": {"text/plain"}, "Script-Filename": {"/etc/passwd"},
	}
	_, answer := mustRead(t, cl, r)
	saw := parseSaw(t, answer)
	for name, want := range map[string]any{
		"HTTP_PROXY": nil, "HTTP_X_UNDER": nil, "HTTP_X_DOT": nil, "HTTP_ONCEGATE_EVENT": "stripe:evt_1", "HTTP_X_OK": "1, 2", "HTTP_CONNECTION": nil, "HTTP_TRANSFER_ENCODING": nil,
		"CONTENT_LENGTH": "2", "HTTP_CONTENT_LENGTH": "2", "SCRIPT_FILENAME": root + "/index.php", "SCRIPT_NAME": "/index.php", "REQUEST_URI": r.Target, "HTTP_SCRIPT_FILENAME": "/etc/passwd",
		"REMOTE_ADDR": "127.0.0.1",
	} {
		if saw.Server[name] != want {
			t.Errorf("%s: got %v, want %v", name, saw.Server[name], want)
		}
	}
	t.Run("a header that no record holds", func(t *testing.T) {
		r := post("", "X-Huge", strings.Repeat("x", 70_000))
		_, _, err := read(t, cl, r)
		wantError(t, err, forward.Invalid, false)
	})
	t.Run("more headers than one record holds", func(t *testing.T) {
		r := post("abc")
		for i := range 40 {
			r.Header.Set(fmt.Sprintf("X-Big-%d", i), strings.Repeat("x", 5000))
		}
		_, answer := mustRead(t, cl, r)
		if saw := parseSaw(t, answer); len(fmt.Sprint(saw.Server["HTTP_X_BIG_39"])) != 5000 || string(saw.Body) != "abc" {
			t.Fatal("headers or body were lost")
		}
	})
}

func TestFastCGIAnswers(t *testing.T) {
	root, fpm := startPHP(t, 2)
	tests := []struct {
		what, body string
		status     int
		want       string
		broken     bool
	}{
		{"status&s=404", "", 404, "body", false},
		{"status&s=500", "", 500, "body", false},
		{"status&s=204", "", 204, "", false},
		{"redirect", "", 302, "", false},
		{"cookies", "", 200, "ok", false},
		{"exit", "", 200, "ok", false},
		{"length&n=40", "", 200, strings.Repeat("x", 40), false},
		{"length&n=10", "", 200, strings.Repeat("x", 10), false},
		{"length&n=100", "", 200, strings.Repeat("x", 40), true}, // B43
		{"die", "", 0, "", true},                                 // B43
		{"never", "", 0, "", true},
		{"echo", "", 200, "", false},
		{"echo", strings.Repeat("a", 60_000), 200, strings.Repeat("a", 60_000), false},
		{"echo", strings.Repeat("b", 3<<20), 200, strings.Repeat("b", 3<<20), false},
		{"complain", "", 200, "ok", false}, // more than a head may have
		{"unread", strings.Repeat("c", 3<<20), 200, "unread", false},
	}
	for mode, idle := range map[string]time.Duration{"a connection each": 0, "kept connections": time.Minute} {
		cl := php(t, fpm.Socket, root, idle, forward.Options{})
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s/%s, %d bytes", mode, tt.what, len(tt.body)), func(t *testing.T) {
				for range 3 {
					a, body, err := read(t, cl, do(tt.what, tt.body))
					if tt.broken {
						wantError(t, err, forward.Broken, true)
					} else if err != nil {
						t.Fatal(err)
					}
					if tt.status != 0 && (a == nil || a.Status != tt.status || body != tt.want) {
						t.Fatalf("got %v, %d bytes; want %d, %d bytes", a, len(body), tt.status, len(tt.want))
					}
					if tt.what == "cookies" && len(a.Header["Set-Cookie"]) != 2 {
						t.Fatalf("got %v", a.Header)
					}
				}
			})
		}
		t.Run(mode+"/HEAD", func(t *testing.T) {
			for range 3 {
				r := do("length&n=40", "")
				r.Method = "HEAD"
				if a, body := mustRead(t, cl, r); body != "" || a.Header.Get("Content-Length") != "40" {
					t.Fatalf("got %q, %v", body, a.Header)
				}
			}
		})
	}
}

func TestFastCGIStreams(t *testing.T) {
	root, fpm := startPHP(t, 1)
	cl := php(t, fpm.Socket, root, 0, forward.Options{})
	a, err := cl.Forward(t.Context(), do("stream", ""))
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 5)
	if _, err := io.ReadFull(a.Body, first); err != nil || string(first) != "first" {
		t.Fatalf("got %q, %v", first, err)
	}
	writeFile(t, root+"/go", "")
	if rest, err := io.ReadAll(a.Body); err != nil || string(rest) != "second" {
		t.Fatalf("got %q, %v", rest, err)
	}
	t.Run("the deadline holds while it streams", func(t *testing.T) {
		if err := os.Remove(root + "/go"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		a, err := cl.Forward(ctx, do("stream", ""))
		if err == nil {
			_, err = io.ReadAll(a.Body)
		}
		wantError(t, err, forward.Timeout, true)
		writeFile(t, root+"/go", "")
	})
}

func TestFastCGIRoot(t *testing.T) {
	root, fpm := startPHP(t, 1)
	t.Run("a release that is switched by a symlink", func(t *testing.T) {
		dir := testenv.Dir(t)
		for _, release := range []string{"1", "2"} {
			if err := os.Mkdir(dir+"/"+release, 0o755); err != nil {
				t.Fatal(err)
			}
			writeFile(t, dir+"/"+release+"/index.php", frontController)
		}
		cl := php(t, fpm.Socket, dir+"/current", 0, forward.Options{})
		for _, release := range []string{"1", "2"} {
			os.Remove(dir + "/current")
			if err := os.Symlink(release, dir+"/current"); err != nil {
				t.Fatal(err)
			}
			_, answer := mustRead(t, cl, post(""))
			if saw := parseSaw(t, answer); saw.Dir != dir+"/"+release || saw.Server["DOCUMENT_ROOT"] != saw.Dir {
				t.Fatalf("ran %s, want release %s", saw.Dir, release)
			}
		}
	})
	t.Run("no app there: PHP-FPM's word is in the log", func(t *testing.T) {
		var log bytes.Buffer
		cl := php(t, fpm.Socket, root+"/none", 0, forward.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		a, _ := mustRead(t, cl, post(""))
		if a.Status != 404 || !strings.Contains(log.String(), "Primary script unknown") {
			t.Fatalf("got %d, log %q", a.Status, log.String())
		}
	})
	for _, bad := range []string{"", "public"} {
		if _, err := forward.New(forward.Upstream{Scheme: "fcgi", Address: "127.0.0.1:9000", Root: bad}, forward.Options{}); err == nil {
			t.Errorf("root %q was taken", bad)
		}
	}
}

func TestFastCGIPassThrough(t *testing.T) {
	root, fpm := startPHP(t, 1)
	cl := php(t, fpm.Socket, root, 0, forward.Options{})
	send := func(body io.Reader, length int64, header ...string) (*http.Response, string, error) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://shop.example/x?do=echo", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := cl.RoundTrip(req)
		if err != nil {
			return nil, "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp, string(b), err
	}
	big := strings.Repeat("d", 2<<20)
	t.Run("a streamed body", func(t *testing.T) {
		resp, body, err := send(io.NopCloser(strings.NewReader(big)), int64(len(big)), "Expect", "100-continue")
		if err != nil || body != big || resp.Header.Get("X-Length") != "2097152" {
			t.Fatalf("got %d bytes, %v", len(body), err)
		}
	})
	t.Run("B54 a chunked body arrives with its length", func(t *testing.T) {
		if _, body, err := send(io.NopCloser(strings.NewReader("chunked")), -1); err != nil || body != "chunked" {
			t.Fatalf("got %q, %v", body, err)
		}
	})
	t.Run("B54 one too large to read ahead is refused, not cut", func(t *testing.T) {
		_, _, err := send(io.NopCloser(strings.NewReader(big)), -1)
		wantError(t, err, forward.Invalid, false)
	})
	t.Run("B53 a body shorter than it says", func(t *testing.T) {
		_, _, err := send(io.NopCloser(strings.NewReader("short")), 100)
		wantError(t, err, forward.Invalid, false)
		_, _, err = send(io.NopCloser(strings.NewReader(big)), 3<<20)
		wantError(t, err, forward.Broken, true)
	})
}

// A FastCGI app that reads a whole request and goes.
func TestFastCGISentOnce(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	const answer = "\x01\x06\x00\x01\x00\x06\x02\x00A: b\n\n\x00\x00" + "\x01\x06\x00\x01\x00\x02\x00\x00ok" + "\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	requests := make(chan bool, 10)
	app := startRawOn(t, l, func(c *rawConn) {
		for first := true; readFastCGI(c.in); first = false {
			requests <- true
			if !first {
				return
			}
			c.say(answer)
		}
	})
	for _, body := range []string{"", "{}", strings.Repeat("x", 300<<10)} {
		t.Run(fmt.Sprintf("B37 %d bytes", len(body)), func(t *testing.T) {
			cl := php(t, app.Addr().String(), "/srv", time.Minute, forward.Options{})
			if a, got := mustRead(t, cl, post("warm")); got != "ok" || a.Header.Get("A") != "b" {
				t.Fatalf("got %q, %v", got, a.Header)
			}
			_, _, err := read(t, cl, post(body, "Idempotency-Key", "k"))
			wantError(t, err, forward.Broken, true)
			if n := len(requests); n != 2 {
				t.Fatalf("the app read %d requests, want 2", n)
			}
			<-requests
			<-requests
		})
	}
	t.Run("no app", func(t *testing.T) {
		_, _, err := read(t, php(t, "/nonexistent.sock", "/srv", 0, forward.Options{}), post(""))
		wantError(t, err, forward.Unreached, false)
	})
}

// readFastCGI reads records up to the end of the body.
func readFastCGI(r io.Reader) bool {
	for {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return false
		}
		n := int64(head[4])<<8 + int64(head[5]) + int64(head[6])
		if _, err := io.CopyN(io.Discard, r, n); err != nil {
			return false
		}
		if head[1] == 5 && n == 0 {
			return true
		}
	}
}
