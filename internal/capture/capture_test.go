package capture_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"oncegate/internal/capture"
)

func files(name string) ([]byte, error) {
	if name == "body.json" {
		return []byte("{\"a\":\n1}\n"), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// show writes a request in one line, with the headers that were asked for.
func show(r capture.Request) string {
	d := r.Delivery
	text := fmt.Sprintf("%s %s @%s %q", d.Method, d.Target, d.Host, d.Body)
	for _, name := range slices.Sorted(maps.Keys(d.Header)) {
		text += fmt.Sprintf(" %s=%s", name, strings.Join(d.Header[name], "|"))
	}
	if len(r.Doubts) > 0 {
		text += " (doubted)"
	}
	return text
}

func TestRead(t *testing.T) {
	const har = `{"log":{"version":"1.2","entries":[%s]}}`
	const entry = `{"request":{"method":"POST","url":"https://shop.example/hook?a=%2F#x","headers":[{"name":":authority","value":"no"},{"name":"X-Sig","value":"1"},{"name":"x-sig","value":"2"}],"postData":{"mimeType":"application/json","text":"{\"a\":1}"}}}`
	const fromHAR = `POST /hook?a=%2F @shop.example "{\"a\":1}" X-Sig=1|2`
	for _, c := range []struct{ name, text, want string }{
		{"raw", "POST /hook?a=1 HTTP/1.1\r\nHost: shop.example\r\nX-Sig: 1\r\nContent-Length: 2\r\n\r\n{}", `POST /hook?a=1 @shop.example "{}" Content-Length=2 X-Sig=1`},
		{"raw, by an editor", "POST /hook HTTP/1.1\nHost: shop.example\nContent-Length: 2\n\n{}\n", `POST /hook @shop.example "{}" Content-Length=2`},
		{"raw, a body with empty lines", "POST /hook HTTP/1.1\nHost: h\n\na\r\n\r\nb", `POST /hook @h "a\r\n\r\nb"`},
		{"raw, the newline in doubt", "POST /hook HTTP/1.1\nHost: h\n\n{}\n", `POST /hook @h "{}\n" (doubted)`},
		{"raw, in chunks", "POST /hook HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n2\r\n{}\r\n0\r\n\r\n", `POST /hook @h "{}"`},
		{"raw, chunked once", "POST /hook HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n{}", `POST /hook @h "{}"`},
		{"a HAR", fmt.Sprintf(har, entry), fromHAR},
		{"an entry", entry, fromHAR},
		{"two entries", fmt.Sprintf(har, entry+","+entry), fromHAR + "\n" + fromHAR},
		{"a HAR's binary body", `{"request":{"method":"POST","url":"http://h","headers":[{"name":"Host","value":"other"}],"postData":{"text":"AP8=","encoding":"base64"}}}`, `POST / @other "\x00\xff"`},
		{"a HAR whose sizes differ", `{"method":"POST","url":"http://h/","headers":[],"bodySize":3,"postData":{"text":"{}"}}`, `POST / @h "{}" (doubted)`},
		{"curl", "curl -X POST https://shop.example/hook -H 'X-Sig: a' --data-raw '{\"a\":\"it'\\''s\"}'", `POST /hook @shop.example "{\"a\":\"it's\"}" Content-Type=application/x-www-form-urlencoded X-Sig=a`},
		{"curl, from a browser", "curl 'https://shop.example/hook' \\\n  -H 'content-type: application/json' \\\n  --data-raw $'{\"a\":\"it\\'s \\u00e9 \\ud83d\\ude00\"}' \\\n  --compressed", `POST /hook @shop.example "{\"a\":\"it's é 😀\"}" Content-Type=application/json`},
		{"curl, short options", "$ curl -sSXPUT -H'X-A: 1' -ks -u me:pw h/x -d a=1 -d b=2", `PUT /x @h "a=1&b=2" Authorization=Basic bWU6cHc= Content-Type=application/x-www-form-urlencoded X-A=1`},
		{"curl, a file", "curl h --data-binary @body.json -H 'Content-Type: application/json'", `POST / @h "{\"a\":\n1}\n" Content-Type=application/json`},
		{"curl, a file by -d", "curl h -d @body.json", `POST / @h "{\"a\":1}" Content-Type=application/x-www-form-urlencoded (doubted)`},
		{"curl, JSON", `curl --json "{\"a\":1}" --url=http://h/x`, `POST /x @h "{\"a\":1}" Content-Type=application/json`},
		{"curl, no body", "curl 'http://h/x?challenge=1'", `GET /x?challenge=1 @h ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			requests, err := capture.Read([]byte(c.text), capture.Options{ReadFile: files})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range requests {
				got = append(got, show(r))
			}
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
	for name, text := range map[string]string{
		"nothing":               " \n",
		"prose":                 "hello",
		"short":                 "POST / HTTP/1.1\nHost: h\nContent-Length: 99\n\n{}",
		"other JSON":            `{"a":1}`,
		"no JSON":               `{"log":`,
		"an entry without URL":  `{"request":{"method":"POST"}}`,
		"a form without text":   `{"request":{"method":"POST","url":"http://h/","postData":{"params":[{"name":"a"}]}}}`,
		"no base64":             `{"request":{"method":"POST","url":"http://h/","postData":{"text":"!","encoding":"base64"}}}`,
		"curl without URL":      "curl -X POST",
		"curl, unknown option":  "curl -F a=b http://h",
		"curl, two URLs":        "curl http://h http://i",
		"curl, ends in option":  "curl http://h -d",
		"curl, open quote":      "curl 'http://h",
		"curl, open dollar":     "curl $'http://h",
		"curl, a variable":      `curl "http://h/$X"`,
		"curl, a pipe":          "curl http://h | sh",
		"curl, standard input":  "curl http://h -d @-",
		"curl, a bad escape":    `curl $'http://h\xzz'`,
		"curl, a broken header": "curl http://h -H nothing",
	} {
		t.Run("no request: "+name, func(t *testing.T) {
			requests, err := capture.Read([]byte(text), capture.Options{ReadFile: files})
			if !errors.Is(err, capture.ErrFormat) {
				t.Errorf("%v, %v", requests, err)
			}
		})
	}
	if _, err := capture.Read([]byte("curl h -d @other.json"), capture.Options{ReadFile: files}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that isn't there: %v", err)
	}
	if _, err := capture.Read([]byte("curl h -d @body.json"), capture.Options{}); !errors.Is(err, capture.ErrFormat) {
		t.Errorf("a file that may not be read: %v", err)
	}
}

// FuzzRead: whatever a file holds, there is a request or our own error, soon.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"POST / HTTP/1.1\nHost: h\nContent-Length: 2\n\n{}", "curl 'h' -d $'\\u00e9\\x41' -XPOST -sS \\\n -H \"a: b\"",
		`{"log":{"entries":[{"request":{"method":"POST","url":"http://h/","postData":{"text":"a"}}}]}}`,
		"POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n1\r\na\r\n0\r\n\r\n", "curl -",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		began := time.Now()
		requests, err := capture.Read(text, capture.Options{})
		if err != nil && !errors.Is(err, capture.ErrFormat) {
			t.Fatalf("%v", err)
		}
		for _, r := range requests {
			if err == nil && (r.Delivery == nil || r.Delivery.Method == "" || r.Delivery.Target == "") {
				t.Fatalf("half a request: %+v", r.Delivery)
			}
		}
		if time.Since(began) > 5*time.Second {
			t.Fatal("too slow")
		}
	})
}
