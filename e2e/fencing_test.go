package e2e

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// stages is an app whose attempts wait for the test: attempt n answers when it
// is told how.
type stages struct {
	*harness.App
	arrived map[string]chan struct{} // by attempt number; closed when it is at the app
	answer  map[string]chan harness.Reply
}

func newStages(t *testing.T) *stages {
	t.Helper()
	s := &stages{arrived: make(map[string]chan struct{}), answer: make(map[string]chan harness.Reply)}
	for _, n := range []string{"1", "2", "3"} {
		s.arrived[n], s.answer[n] = make(chan struct{}), make(chan harness.Reply, 1)
	}
	s.App = harness.NewApp(t, testenv.Port(t), func(r *harness.Request) harness.Reply {
		n := r.Header.Get("Oncegate-Attempt")
		close(s.arrived[n]) // a second request with one number panics here
		select {
		case reply := <-s.answer[n]:
			return reply
		case <-r.Gone:
			return harness.Reply{Close: true}
		}
	})
	return s
}

// await waits until an attempt is at the app.
func (s *stages) await(t *testing.T, attempt string) {
	t.Helper()
	select {
	case <-s.arrived[attempt]:
	case <-time.After(20 * time.Second):
		t.Fatalf("attempt %s does not arrive at the app", attempt)
	}
}

// TestFencedAttempt pauses a gate past its lease, lets the other take the event
// over, and wakes the first: it must change nothing any more.
func TestFencedAttempt(t *testing.T) {
	event := harness.NewEvent(1)
	byOne, byTwo := harness.Reply{Body: []byte("by attempt 1")}, harness.Reply{Body: []byte("by attempt 2")}
	for name, late := range map[string]harness.Reply{
		"the first one's 200": byOne,
		"the first one's 500": {Status: 500, Body: []byte("attempt 1 failed")},
		"the first one's 503": {Status: 503, Body: []byte("attempt 1 is busy")},
		"a broken connection": {Raw: []byte{}, Reset: true},
	} {
		t.Run("B26 "+name+" comes after the second is done", func(t *testing.T) {
			t.Parallel()
			app := newStages(t)
			a, b := pair(t, fieldLimits, route("wait: 8s"), app.URL)
			first := inBackground(t, a, event)
			app.await(t, "1")
			a.Pause(t)
			second := inBackground(t, b, event)
			app.await(t, "2")
			app.answer["2"] <- byTwo
			accepted(t, <-second, "fresh")
			app.answer["1"] <- late
			a.Resume(t)
			checkFenced(t, <-first, byOne, byTwo)
			afterFencing(t, app, a, b, event, byTwo)
		})
		t.Run("B26 "+name+" comes while the second runs", func(t *testing.T) {
			t.Parallel()
			app := newStages(t)
			a, b := pair(t, fieldLimits, route("wait: 8s"), app.URL)
			first := inBackground(t, a, event)
			app.await(t, "1")
			a.Pause(t)
			second := inBackground(t, b, event)
			app.await(t, "2")
			app.answer["1"] <- late
			a.Resume(t)
			waitFor(t, "the first to notice that it is fenced", func() bool {
				return a.Metric(t, "oncegate_fenced_writes_total") > 0
			})
			app.answer["2"] <- byTwo
			accepted(t, <-second, "fresh")
			checkFenced(t, <-first, byOne, byTwo)
			afterFencing(t, app, a, b, event, byTwo)
		})
	}
}

// checkFenced wants for the fenced attempt's own sender what the app itself
// said, if that was a 2xx; else what the second attempt stored, or a refusal
// that it may retry.
func checkFenced(t *testing.T, answer harness.Answer, own, stored harness.Reply) {
	t.Helper()
	switch {
	case answer.OK() && (bytes.Equal(answer.Body, own.Body) || bytes.Equal(answer.Body, stored.Body)):
	case answer.Status == 503 && answer.Header.Get("Retry-After") != "":
	default:
		t.Errorf("the fenced attempt's sender was answered %v", answer)
	}
}

func afterFencing(t *testing.T, app *stages, a, b *harness.Gate, event harness.Event, stored harness.Reply) {
	t.Helper()
	for _, gate := range []*harness.Gate{a, b} {
		again := deliver(t, gate, event)
		// One that still has a late answer to write lets deliveries wait for it.
		accepted(t, again, "replay", "waited")
		if !bytes.Equal(again.Body, stored.Body) {
			t.Errorf("the stored answer is %q, want %q", again.Body, stored.Body)
		}
	}
	if hits := app.Hits(event.ID); hits != 2 {
		t.Errorf("the app ran %d times, want 2", hits)
	}
	if n := a.Metric(t, "oncegate_fenced_writes_total"); n < 1 {
		t.Errorf("%v fenced writes were counted", n)
	}
}

// TestCrashBeforeTheAnswerIsStored takes the store away between the app's 200
// and the settle.
func TestCrashBeforeTheAnswerIsStored(t *testing.T) {
	event := harness.NewEvent(1)
	done := harness.Reply{Body: []byte("done")}

	t.Run("B35a killed in between", func(t *testing.T) {
		t.Parallel()
		app := newStages(t)
		a, b := pair(t, fieldLimits, route("wait: 8s"), app.URL)
		inBackground(t, a, event)
		app.await(t, "1")
		release := blockStore(t, a)
		app.answer["1"] <- done
		waitFor(t, "the settle to be owed", func() bool { return a.Metric(t, "oncegate_owed_total") > 0 })
		a.Kill(t)
		release()
		second := inBackground(t, b, event)
		app.await(t, "2") // announced by its number
		app.answer["2"] <- done
		accepted(t, <-second, "fresh")
		if n := b.Metric(t, "oncegate_possible_second_runs_total"); n != 1 {
			t.Errorf("%v possible second runs were counted, want 1", n)
		}
	})

	t.Run("B35b the store is away for three seconds", func(t *testing.T) {
		t.Parallel()
		app := newStages(t)
		// With a lease that outlives the outage, nobody may take over.
		a, b := pair(t, "lease: 10s\napp_limit: 0s\nupstream_timeout: 60s\n", route("wait: 8s"), app.URL)
		first := inBackground(t, a, event)
		app.await(t, "1")
		release := blockStore(t, a)
		app.answer["1"] <- done
		gone := time.Now()
		accepted(t, <-first, "fresh")
		duplicate := inBackground(t, a, event)
		time.Sleep(time.Until(gone.Add(3 * time.Second)))
		release()
		again := <-duplicate
		if again.OK() {
			accepted(t, again, "replay", "waited")
		} else {
			refused(t, again, "unavailable", "settling", "busy")
		}
		waitFor(t, "the settle to be written", func() bool { return deliver(t, b, event).Result() == "replay" })
		if hits := app.Hits(event.ID); hits != 1 {
			t.Errorf("the app ran %d times, want 1", hits)
		}
	})
}

func TestManyDuplicatesOverTwoGates(t *testing.T) {
	t.Parallel()
	t.Run("B30 all wait for the one attempt", func(t *testing.T) {
		event := harness.NewEvent(1)
		app := newStages(t)
		a, b := pair(t, fieldLimits, route("wait: 5s"), app.URL)
		owner := inBackground(t, a, event)
		app.await(t, "1")
		var waiting sync.WaitGroup
		var mu sync.Mutex
		var last time.Time
		for i := range 20 {
			gate := []*harness.Gate{a, b}[i%2]
			waiting.Go(func() {
				answer := deliver(t, gate, event)
				accepted(t, answer, "waited")
				mu.Lock()
				defer mu.Unlock()
				last = time.Now()
			})
		}
		time.Sleep(1500 * time.Millisecond) // the app works
		app.answer["1"] <- harness.Reply{Body: []byte("done")}
		accepted(t, <-owner, "fresh")
		finished := time.Now()
		waiting.Wait()
		if lag := last.Sub(finished); lag > 300*time.Millisecond {
			t.Errorf("the last duplicate was answered %v after the attempt", lag)
		}
		if hits := app.Hits(event.ID); hits != 1 {
			t.Errorf("the app ran %d times, want 1", hits)
		}
	})
}
