package e2e

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"testing"

	"oncegate/e2e/harness"
)

// passThrough starts a gate before a handler, with the webhook's route beside.
func passThrough(t *testing.T, handler http.HandlerFunc) *harness.Gate {
	t.Helper()
	app := httptest.NewServer(handler)
	t.Cleanup(app.Close)
	return binary.Serve(t, harness.Config{Upstream: app.URL, Routes: harness.StripeRoute})
}

// TestHugeBodies sends two gigabytes each way, on a path that is no route.
func TestHugeBodies(t *testing.T) {
	const size = 2 << 30
	gate := passThrough(t, func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		if err != nil {
			t.Errorf("the app got %d bytes, then %v", n, err)
		}
		w.Header().Set("Received", fmt.Sprintf("%d %x", n, sum.Sum(nil)))
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = io.Copy(w, pattern(size)) // the client counts
	})
	want, got := sha256.New(), sha256.New()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, gate.URL+"/upload", io.TeeReader(pattern(size), want))
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = size
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if received := response.Header.Get("Received"); received != fmt.Sprintf("%d %x", size, sumOf(want)) {
		t.Errorf("the app received %s", received)
	}
	if n, err := io.Copy(got, response.Body); err != nil || n != size || string(sumOf(got)) != string(sumOf(want)) {
		t.Errorf("the client received %d bytes, %v", n, err)
	}
	if peak := peakMemory(t, gate.Pid()); peak > 128<<20 {
		t.Errorf("oncegate needed %d MiB for it", peak>>20)
	}
}

func sumOf(h hash.Hash) []byte { return h.Sum(nil) }

// pattern reads as size bytes that repeat only after a while.
func pattern(size int64) io.Reader {
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * 31 >> 3)
	}
	return io.LimitReader(&cycle{block: block}, size)
}

type cycle struct {
	block []byte
	at    int
}

func (c *cycle) Read(b []byte) (int, error) {
	n := copy(b, c.block[c.at:])
	c.at = (c.at + n) % len(c.block)
	return n, nil
}

// peakMemory returns the most memory that a process has held, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("the kernel tells no VmHWM")
	return 0
}

// TestServerSentEvents wants each event before the next is made.
func TestServerSentEvents(t *testing.T) {
	next := make(chan struct{})
	gate := passThrough(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
			fmt.Fprintf(w, "data: %d\n\n", i)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	})
	go func() { next <- struct{}{} }() // the header comes with the first event
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gate.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	events := bufio.NewReader(response.Body)
	for i := range 5 {
		line, err := events.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", i); line != want || err != nil {
			t.Fatalf("read %q, %v; want %q", line, err, want)
		}
		if _, err := events.Discard(1); err != nil {
			t.Fatal(err)
		}
		if i < 4 {
			next <- struct{}{}
		}
	}
}

// TestTrailersAndEarlyHints sends trailers both ways and an answer before the
// answer.
func TestTrailersAndEarlyHints(t *testing.T) {
	gate := passThrough(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</app.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Trailer", "Checksum")
		w.WriteHeader(http.StatusOK)
		fmt.Fprintf(w, "%s and trailer %s", body, r.Trailer.Get("Sent-Checksum"))
		w.Header().Set("Checksum", "of the answer")
	})
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, " ", header.Get("Link")))
			return nil
		},
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, gate.URL+"/x", io.MultiReader(strings.NewReader("body")))
	if err != nil {
		t.Fatal(err)
	}
	request.Trailer = http.Header{"Sent-Checksum": {"of the request"}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "body and trailer of the request" {
		t.Errorf("%q, %v", body, err)
	}
	if got := response.Trailer.Get("Checksum"); got != "of the answer" {
		t.Errorf("the answer's trailer is %q", got)
	}
	if len(hints) != 1 || hints[0] != "103 </app.css>; rel=preload" {
		t.Errorf("1xx answers: %q", hints)
	}
}
