package bench

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const secret = "whsec_of_the_benchmark"

// A load is what one cell asks, over and over.
type load struct {
	addr string
	// next writes the n-th request.
	next func(b []byte, n int64) []byte
	// result is the Oncegate-Result that each answer must have; empty: none.
	result string
}

// padding makes an event as large as Stripe's small ones are.
var padding = strings.Repeat("0", 1500)

// event returns a signed delivery of the event with this ID, of the size of a
// small Stripe event.
func event(b []byte, id string) []byte {
	body := `{"id":"` + id + `","type":"invoice.paid","data":"` + padding + `"}`
	now := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(now + "." + body))
	b = append(b, "POST /stripe/webhook HTTP/1.1\r\nHost: shop.example\r\nContent-Type: application/json\r\nStripe-Signature: t="...)
	b = append(b, now...)
	b = append(b, ",v1="...)
	b = hex.AppendEncode(b, mac.Sum(nil))
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}

// pages asks for what is on no route.
func pages(b []byte, _ int64) []byte {
	return append(b, "GET /page HTTP/1.1\r\nHost: shop.example\r\n\r\n"...)
}

// A sample is what one cell did in one round.
type sample struct {
	took   time.Duration
	delays []time.Duration
}

// run asks over conns connections for as long as given, each connection one
// request at a time.
func (l load) run(conns int, d time.Duration, counter *atomic.Int64) (sample, error) {
	var mu sync.Mutex
	var all sample
	var firstErr error
	var wg sync.WaitGroup
	start := time.Now()
	for range conns {
		wg.Go(func() {
			delays, err := l.connection(start.Add(d), counter)
			mu.Lock()
			defer mu.Unlock()
			all.delays = append(all.delays, delays...)
			if err != nil && firstErr == nil {
				firstErr = err
			}
		})
	}
	wg.Wait()
	all.took = time.Since(start)
	return all, firstErr
}

// connection asks at least once, and until then.
func (l load) connection(until time.Time, counter *atomic.Int64) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	var delays []time.Duration
	var buf []byte
	for len(delays) == 0 || time.Now().Before(until) {
		buf = l.next(buf[:0], counter.Add(1))
		start := time.Now()
		if _, err := conn.Write(buf); err != nil {
			return nil, err
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return nil, err
		}
		delays = append(delays, time.Since(start))
		if got := resp.Header.Get("Oncegate-Result"); resp.StatusCode != 200 || got != l.result {
			return nil, fmt.Errorf("answered %d, %q; want 200, %q", resp.StatusCode, got, l.result)
		}
	}
	return delays, nil
}

// quantile returns the q-th quantile of delays, which it sorts.
func quantile(delays []time.Duration, q float64) time.Duration {
	slices.Sort(delays)
	return delays[min(len(delays)-1, int(q*float64(len(delays))))]
}
