package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"oncegate/internal/delivery"
	"oncegate/verify"
)

// An answer is what became of one delivery that was sent.
type answer struct {
	status int // 0: there was none
	// result is oncegate's word, or what went wrong.
	result string
	body   [sha256.Size]byte
	took   time.Duration
}

func (a answer) good() bool { return a.status >= 200 && a.status <= 299 }

// maxAnswerRead bounds what is read of an answer.
const maxAnswerRead = 16 << 20

// deliver sends one delivery, once.
func deliver(ctx context.Context, client *http.Client, target *url.URL, d *delivery.Delivery) (a answer) {
	began := time.Now()
	defer func() { a.took = time.Since(began) }()
	to := *target
	to.RawQuery = d.RawQuery() // a signature may stand there
	request, err := http.NewRequestWithContext(ctx, d.Method, to.String(), bytes.NewReader(d.Body))
	if err != nil {
		return answer{result: "not sent"}
	}
	request.Header = d.Header.Clone()
	response, err := client.Do(request)
	if err != nil {
		return answer{result: whyNone(err)}
	}
	defer response.Body.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(response.Body, maxAnswerRead)); err != nil {
		return answer{result: "the answer broke off"}
	}
	a = answer{status: response.StatusCode, result: word(response.Header.Get("Oncegate-Result"))}
	sum.Sum(a.body[:0])
	return a
}

// printDelivery prints a delivery as it would be sent. Where it can't be signed it is
// printed all the same, and that is said beside it.
func (p *program) printDelivery(s *sampler) error {
	d, err := s.signed(0, time.Now())
	if errors.Is(err, verify.ErrCannotSign) {
		fmt.Fprintf(p.stderr, "not signed: %s\n", whyUnsigned(s.route.Preset))
		d, err = s.first, nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s %s HTTP/1.1\r\nHost: %s\r\n", d.Method, d.Target, d.Host)
	for _, name := range sortedKeys(d.Header) {
		for _, value := range d.Header[name] {
			fmt.Fprintf(p.stdout, "%s: %s\r\n", name, value)
		}
	}
	_, err = fmt.Fprintf(p.stdout, "Content-Length: %d\r\n\r\n%s", len(d.Body), d.Body)
	return err
}

// word keeps what a stranger's header may do to a terminal out of it.
func word(s string) string {
	if s == "" || len(s) > 32 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") != "" {
		return "-"
	}
	return s
}

// whyNone says in a few words why there was no answer.
func whyNone(err error) string {
	var refused *url.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &refused) && refused.Timeout():
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "stopped"
	}
	return "no answer"
}

// A kind is a number of answers that are alike.
type kind struct {
	count          int
	status, result string
	good           bool
	slowest        time.Duration
}

// grouped gathers answers by status and result, those of the most first.
func grouped(answers []answer) []kind {
	var kinds []kind
	for _, a := range answers {
		status := "-"
		if a.status != 0 {
			status = strconv.Itoa(a.status)
		}
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.status == status && k.result == a.result })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, kind{status: status, result: a.result, good: a.good()})
		}
		kinds[i].count++
		kinds[i].slowest = max(kinds[i].slowest, a.took)
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { return b.count - a.count })
	return kinds
}
