package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestPrivateAddresses(t *testing.T) {
	for address, public := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true,
		"127.0.0.1:443": false, "10.1.2.3:443": false, "192.168.1.1:443": false, "172.16.0.1:443": false, "169.254.169.254:443": false,
		"100.64.0.1:443": false, "0.0.0.0:443": false, "[::1]:443": false, "[::ffff:127.0.0.1]:443": false, "[fd00::1]:443": false, "[fe80::1]:443": false,
		"224.0.0.1:443": false, "255.255.255.255:443": false,
	} {
		if err := publicOnly("tcp", address, nil); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
	t.Run("a pinned host that resolves to this machine", func(t *testing.T) {
		f := newFetcher(nil)
		if _, err := f.get(context.Background(), question{url: "https://localhost:1/"}, false); !errors.Is(err, errPrivate) {
			t.Errorf("%v, want errPrivate", err)
		}
	})
}

func TestFetcherCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := question{url: "https://keys.example/set"}
		w := &web{pages: map[string]string{q.url: "one"}}
		f := newFetcher(w)
		get := func(newer bool, want string, asked int) {
			t.Helper()
			body, err := f.get(context.Background(), q, newer)
			if string(body) != want || (err == nil) != (want != "") || len(w.asked) != asked {
				t.Errorf("got %q, %v after %d questions; want %q after %d", body, err, len(w.asked), want, asked)
			}
		}
		get(false, "one", 1)
		get(true, "one", 1) // not anew within a minute
		time.Sleep(refreshAtLeast)
		w.pages[q.url] = "two"
		get(false, "one", 1)
		get(true, "two", 2)
		w.err = errors.New("down")
		time.Sleep(freshFor)
		get(false, "two", 3) // an outage doesn't take away a key that was good
		get(false, "two", 3)
		time.Sleep(failedFor)
		get(false, "two", 4)
		time.Sleep(staleFor)
		get(false, "", 5)
		get(false, "", 5) // a failure is remembered for a moment
		time.Sleep(failedFor)
		w.err = nil
		get(false, "two", 6)
	})
}

func TestFetcherAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		f := newFetcher(roundTrip(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			time.Sleep(time.Second)
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("key")), Request: r}, nil
		}))
		done := make(chan error)
		for range 20 {
			go func() {
				_, err := f.get(context.Background(), question{url: "https://keys.example/"}, false)
				done <- err
			}()
		}
		for range 20 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("asked %d times", asked.Load())
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFetcherIsNoHammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{pages: map[string]string{"https://keys.example/good": "key"}}
		f := newFetcher(w)
		good := question{url: "https://keys.example/good"}
		if _, err := f.get(context.Background(), good, false); err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			if _, err := f.get(context.Background(), question{url: fmt.Sprintf("https://keys.example/%d", i)}, false); err == nil {
				t.Fatal("found what is not there")
			}
		}
		if len(w.asked) != fetchBurst {
			t.Errorf("asked %d times", len(w.asked))
		}
		if _, err := f.get(context.Background(), good, false); err != nil {
			t.Errorf("a known key is lost: %v", err)
		}
		time.Sleep(fetchEvery)
		if _, err := f.get(context.Background(), question{url: "https://keys.example/new"}, false); errors.Is(err, errTooOften) {
			t.Error("nothing is asked any more")
		}
	})
}
