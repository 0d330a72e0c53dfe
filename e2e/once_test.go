package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/e2e/harness"
)

// TestOnce is the main job: whatever the sender repeats, in parallel, shuffled,
// later, and across a restart of oncegate, the real app runs each event once,
// and every delivery gets the bytes of the first answer.
func TestOnce(t *testing.T) {
	const events, copies = 100, 20
	shop := harness.NewShop(t, harness.ShopOptions{})
	gate := binary.Serve(t, harness.Config{Upstream: shop.URL, Routes: harness.StripeRoute})
	sender := harness.NewSender()
	defer sender.Close()
	answers := make(firstAnswers)

	work := deliveries(events, copies)
	answers.check(t, work, sender.SendAll(t.Context(), gate.URL+harness.WebhookPath, work, 64))
	if got := gate.Metric(t, "oncegate_deliveries_total", "route=stripe", "result=fresh"); got != events {
		t.Errorf("%v deliveries were fresh, want %d", got, events)
	}
	shopRanEachOnce(t, shop, events)

	shuffled := deliveries(events, 3)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	answers.check(t, shuffled, sender.SendAll(t.Context(), gate.URL+harness.WebhookPath, shuffled, 64))

	gate.Stop(t)
	gate.Start(t)
	answers.check(t, shuffled, sender.SendAll(t.Context(), gate.URL+harness.WebhookPath, shuffled, 64))
	if got := gate.Metric(t, "oncegate_deliveries_total", "route=stripe", "result=replay"); got != float64(len(shuffled)) {
		t.Errorf("%v deliveries were replays after the restart, want %d", got, len(shuffled))
	}
	shopRanEachOnce(t, shop, events)
}

// TestOnceWhileStoppedAndStarted stops and starts oncegate in good order while
// deliveries come in. Senders that find it away send again, as providers do.
func TestOnceWhileStoppedAndStarted(t *testing.T) {
	const events, copies = 80, 5
	shop := harness.NewShop(t, harness.ShopOptions{})
	gate := binary.Serve(t, harness.Config{Upstream: shop.URL, Routes: harness.StripeRoute})

	work := deliveries(events, copies)
	answers := whileSending(t, work, []*harness.Gate{gate}, func(busy context.Context) {
		for busy.Err() == nil {
			pause(busy, 700*time.Millisecond)
			gate.Stop(t)
			gate.Start(t)
		}
	})
	make(firstAnswers).check(t, work, answers)
	shopRanEachOnce(t, shop, events)
}

// TestOnceUnderKill kills oncegate at random moments while deliveries come in.
// Then once can't be promised, but what law 1 and 2 say holds: no event is
// lost, and a second run is announced to the app by its number, and counted.
func TestOnceUnderKill(t *testing.T) {
	const events, copies = 200, 5
	shop := harness.NewShop(t, harness.ShopOptions{})
	// What a killed gate has sent still queues before PHP-FPM: the app limit
	// covers that, on a machine under load.
	gate := binary.Serve(t, harness.Config{
		Upstream: shop.URL, Routes: harness.StripeRoute,
		Top: "lease: 2s\napp_limit: 8s\n",
	})

	var before int // runs that began before the gate's last start
	work := deliveries(events, copies)
	answers := whileSending(t, work, []*harness.Gate{gate}, func(busy context.Context) {
		for range 6 {
			pause(busy, time.Duration(100+rand.IntN(900))*time.Millisecond)
			gate.Kill(t)
			before = len(shop.Runs(t))
			gate.Start(t)
		}
	})
	allAccepted(t, work, answers)
	seconds := everyRunAnnounced(t, shop, events, before)
	if got := gate.Metric(t, "oncegate_possible_second_runs_total"); got < float64(seconds) {
		t.Errorf("%v possible second runs were counted, and %d happened", got, seconds)
	}
}

// allAccepted wants a 2xx for every delivery.
func allAccepted(t *testing.T, work []harness.Event, answers []harness.Answer) {
	t.Helper()
	for i, a := range answers {
		if !a.OK() {
			t.Errorf("%s was given up: %v", work[i].ID, a)
		}
	}
}

// everyRunAnnounced wants at least one run for each event, and a higher attempt
// number for every run of an event after its first. It returns how many such
// runs there are, not counting the first runs that are skipped.
func everyRunAnnounced(t *testing.T, shop *harness.Shop, events, skip int) (seconds int) {
	t.Helper()
	attempts := make(map[string]int)
	runs := shop.Runs(t)
	for i, run := range runs {
		n, err := strconv.Atoi(run.OncegateAttempt)
		if err != nil {
			t.Fatalf("%s ran with Oncegate-Attempt %q", run.Event, run.OncegateAttempt)
		}
		before, again := attempts[run.Event]
		if again && n <= before {
			t.Errorf("%s ran again with attempt %d after attempt %d", run.Event, n, before)
		}
		if again && i >= skip {
			seconds++
		}
		attempts[run.Event] = n
	}
	if len(attempts) != events {
		t.Errorf("%d of %d events ran: the others are lost", len(attempts), events)
	}
	t.Logf("%d runs for %d events", len(runs), events)
	return seconds
}

// firstAnswers holds the body of the first 2xx for each event.
type firstAnswers map[string][]byte

// check wants a 2xx with the bytes of the first one for every delivery.
func (f firstAnswers) check(t *testing.T, work []harness.Event, answers []harness.Answer) {
	t.Helper()
	var wrong []string
	for i, a := range answers {
		id := work[i].ID
		first, known := f[id]
		switch {
		case !a.OK():
			wrong = append(wrong, fmt.Sprintf("%s: %v", id, a))
		case !known:
			f[id] = a.Body
		case !bytes.Equal(first, a.Body):
			wrong = append(wrong, fmt.Sprintf("%s was answered %q first, and then %q", id, first, a.Body))
		}
	}
	if n := len(wrong); n > 0 {
		t.Errorf("%d of %d deliveries went wrong, such as:\n%s", n, len(answers), strings.Join(wrong[:min(n, 5)], "\n"))
	}
}

func shopRanEachOnce(t *testing.T, shop *harness.Shop, events int) {
	t.Helper()
	if n := shop.Payments(t); n != events {
		t.Errorf("%d payments for %d events", n, events)
	}
	if n := shop.Enrolments(t); n != events {
		t.Errorf("%d enrolments for %d events", n, events)
	}
	for _, run := range shop.Runs(t) {
		if run.OncegateEvent != "stripe:"+run.Event || run.OncegateAttempt != "1" {
			t.Errorf("%s ran with Oncegate-Event %q and Oncegate-Attempt %q", run.Event, run.OncegateEvent, run.OncegateAttempt)
		}
	}
}

// whileSending delivers work as a provider does, to the gates in turn, sending
// each again until it is answered 2xx, and meanwhile disturbs. busy ends with
// the last delivery.
func whileSending(t *testing.T, work []harness.Event, gates []*harness.Gate, disturb func(busy context.Context)) (answers []harness.Answer) {
	t.Helper()
	var urls []string
	for _, gate := range gates {
		urls = append(urls, gate.URL+harness.WebhookPath)
	}
	sender := harness.NewSender()
	defer sender.Close()
	busy, done := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() {
		defer done()
		answers = sender.SendUntilOK(t.Context(), urls, work, 48)
	})
	disturb(busy)
	sending.Wait()
	return answers
}

// pause waits for d or until the deliveries are over.
func pause(busy context.Context, d time.Duration) {
	select {
	case <-busy.Done():
	case <-time.After(d):
	}
}
