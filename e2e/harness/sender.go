package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stripe/stripe-go/v82"
	"github.com/stripe/stripe-go/v82/webhook"
)

// An Event is one event of Stripe's, ready to be delivered any number of
// times.
type Event struct {
	ID   string
	Body []byte
}

// NewEvent makes the n-th event: a payment that succeeded.
func NewEvent(n int) Event {
	id := fmt.Sprintf("evt_%06d", n)
	body := fmt.Sprintf(`{
  "id": %q,
  "object": "event",
  "api_version": %q,
  "created": 1700000000,
  "type": "payment_intent.succeeded",
  "data": {
    "object": {"id": "pi_%d", "object": "payment_intent", "amount": %d, "customer": "cus_%d"}
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {"id": null, "idempotency_key": null}
}`, id, stripe.APIVersion, n, 1000+n, n)
	return Event{ID: id, Body: []byte(body)}
}

// A Delivery is a request as a provider sends it, but for the place it goes
// to.
type Delivery struct {
	Header http.Header
	Body   []byte
}

// Delivery signs the event anew, as Stripe does for each delivery.
func (e Event) Delivery() Delivery { return e.DeliveryAt(time.Now()) }

// DeliveryAt signs the event with a time of one's own.
func (e Event) DeliveryAt(at time.Time) Delivery {
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
		Payload: e.Body, Secret: Secret, Timestamp: at,
	})
	return Delivery{
		Header: http.Header{
			"Stripe-Signature": {signed.Header},
			"Content-Type":     {"application/json; charset=utf-8"},
			"User-Agent":       {"Stripe/1.0 (+https://stripe.com/docs/webhooks)"},
		},
		Body: e.Body,
	}
}

// An Answer is what a sender got: a whole answer, or the error that kept it
// from one.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error
	Took   time.Duration
}

// OK reports a complete 2xx.
func (a Answer) OK() bool { return a.Err == nil && a.Status/100 == 2 }

// Result returns oncegate's word for what it did.
func (a Answer) Result() string { return a.Header.Get("Oncegate-Result") }

func (a Answer) String() string {
	if a.Err != nil {
		return fmt.Sprintf("no answer after %v: %v", a.Took.Round(time.Millisecond), a.Err)
	}
	return fmt.Sprintf("%d %s %.120q after %v", a.Status, a.Result(), a.Body, a.Took.Round(time.Millisecond))
}

// A Sender delivers over connections of its own. It follows no redirect and
// retries nothing: the tests decide what is sent again. It is safe for
// concurrent use.
type Sender struct{ client *http.Client }

// NewSender returns a sender that waits for an answer as long as Stripe is
// known to, and a little longer.
func NewSender() *Sender {
	return &Sender{client: &http.Client{
		Timeout:       60 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
	}}
}

// Close ends the sender's idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// Send posts a delivery to a URL and returns what came back.
func (s *Sender) Send(ctx context.Context, url string, d Delivery) Answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return Answer{Err: err}
	}
	request.Header = d.Header.Clone()
	return s.Do(request)
}

// Do sends any request and returns what came back.
func (s *Sender) Do(request *http.Request) Answer {
	start := time.Now()
	response, err := s.client.Do(request)
	if err != nil {
		return Answer{Err: err, Took: time.Since(start)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return Answer{Status: response.StatusCode, Header: response.Header, Body: body, Err: err, Took: time.Since(start)}
}

// SendAll posts events, each signed anew, at most width at a time and in the
// order given, and returns the answer to work[i] at i.
func (s *Sender) SendAll(ctx context.Context, url string, work []Event, width int) []Answer {
	return each(work, width, func(e Event) Answer { return s.Send(ctx, url, e.Delivery()) })
}

// SendUntilOK delivers as a provider does whose target is a load balancer:
// what was not answered 2xx is sent again, a moment later, to the next of the
// URLs; as often as it takes, for two minutes.
func (s *Sender) SendUntilOK(ctx context.Context, urls []string, work []Event, width int) []Answer {
	var turn atomic.Int64
	return each(work, width, func(e Event) Answer {
		deadline := time.Now().Add(2 * time.Minute)
		for {
			url := urls[int(turn.Add(1))%len(urls)]
			answer := s.Send(ctx, url, e.Delivery())
			if answer.OK() || ctx.Err() != nil || time.Now().After(deadline) {
				return answer
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}

func each(work []Event, width int, send func(Event) Answer) []Answer {
	answers := make([]Answer, len(work))
	next := make(chan int)
	var wg sync.WaitGroup
	for range width {
		wg.Go(func() {
			for i := range next {
				answers[i] = send(work[i])
			}
		})
	}
	for i := range work {
		next <- i
	}
	close(next)
	wg.Wait()
	return answers
}
