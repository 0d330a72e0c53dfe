package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oncegate/internal/evidence"
	"oncegate/internal/telemetry"
	"oncegate/lock"
)

// A table is a store in memory that can be out.
type table struct {
	evidence.Store
	mu      sync.Mutex // guards what follows
	rows    map[evidence.ID]evidence.Entry
	out     bool
	lost    bool // written, and the reply lost
	written int
	purged  time.Time
	old     int // rows past retention
	kept    bool
	// meanwhile is called while rows are written, if it is there.
	meanwhile func()
}

var errOut = errors.New("out")

func (s *table) Write(_ context.Context, entries []evidence.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out {
		return errOut
	}
	if s.meanwhile != nil {
		s.meanwhile()
	}
	for _, e := range entries {
		s.rows[e.ID] = e
	}
	s.written += len(entries)
	if s.lost {
		return errOut
	}
	return nil
}

func (s *table) Purge(_ context.Context, _ string, before time.Time, limit int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept {
		return 0, errOut
	}
	s.purged = before
	n := min(limit, s.old)
	s.old -= n
	return n, nil
}

// left is how many rows are past retention.
func (s *table) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.old
}

func (s *table) set(out, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out, s.lost = out, lost
}

// all returns what is there.
func (s *table) all() map[evidence.ID]evidence.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.rows)
}

// writes is how many entries were written, again ones too.
func (s *table) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

// deliveries is how many the rows stand for.
func (s *table) deliveries() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.rows {
		n += e.Count
	}
	return n
}

// bubble runs a test with a recorder in a bubble of its own time.
func bubble(t *testing.T, name string, test func(t *testing.T, r *evidence.Recorder, s *table)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &table{rows: map[evidence.ID]evidence.Entry{}}
			r := evidence.NewRecorder(evidence.Options{Namespace: "shop", Store: s, Retention: time.Hour, Log: slog.New(slog.DiscardHandler)})
			test(t, r, s)
			r.Close(t.Context())
		})
	})
}

func outcome(key string, result telemetry.Result) telemetry.Outcome {
	return telemetry.Outcome{
		Route: "stripe", Provider: "stripe", Scope: "stripe", Key: key, Result: result, Status: 200, Attempt: 1,
		Duplicate: result == telemetry.ResultReplay, At: time.Now(), Remote: netip.MustParseAddr("192.0.2.1"),
	}
}

func TestRecorder(t *testing.T) {
	bubble(t, "a storm is one row that counts", func(t *testing.T, r *evidence.Recorder, s *table) {
		first := outcome("evt_1", telemetry.ResultFresh)
		r.Record(&first)
		for range 20 {
			for range 500 {
				o := outcome("evt_1", telemetry.ResultReplay)
				r.Record(&o)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		if len(s.all()) != 2 || s.deliveries() != 10_001 || s.writes() > 2*25 {
			t.Errorf("%d rows for %d deliveries, in %d writes", len(s.all()), s.deliveries(), s.writes())
		}
		for _, e := range s.all() {
			if e.Key != lock.KeyOf("shop", "stripe", "evt_1") || e.Route != "stripe" || e.Remote != "192.0.2.1" {
				t.Errorf("%+v", e)
			}
		}
	})
	bubble(t, "another result, sender or minute is another row", func(t *testing.T, r *evidence.Recorder, s *table) {
		for _, change := range []func(*telemetry.Outcome){
			func(*telemetry.Outcome) {},
			func(o *telemetry.Outcome) { o.Status = 500 },
			func(o *telemetry.Outcome) { o.Remote = netip.MustParseAddr("192.0.2.2") },
			func(o *telemetry.Outcome) { o.Age = time.Hour },
			func(o *telemetry.Outcome) { o.At = o.At.Add(time.Minute) },
		} {
			o := outcome("evt_1", telemetry.ResultReplay)
			change(&o)
			r.Record(&o)
		}
		time.Sleep(2 * time.Second)
		if len(s.all()) != 5 || s.deliveries() != 5 {
			t.Errorf("%d rows, %d deliveries", len(s.all()), s.deliveries())
		}
	})
	bubble(t, "an outage and lost replies cost nothing and count nothing twice", func(t *testing.T, r *evidence.Recorder, s *table) {
		s.set(true, false)
		for i := range 1000 {
			o := outcome(fmt.Sprint("evt_", i%700), telemetry.ResultReplay)
			r.Record(&o)
		}
		time.Sleep(90 * time.Second)
		s.set(false, true)
		time.Sleep(3 * time.Second)
		o := outcome("evt_1", telemetry.ResultReplay)
		r.Record(&o)
		time.Sleep(3 * time.Second)
		s.set(false, false)
		time.Sleep(5 * time.Second)
		if s.deliveries() != 1001 || r.Dropped() != 0 {
			t.Errorf("%d deliveries, %d dropped", s.deliveries(), r.Dropped())
		}
	})
	bubble(t, "what does not fit is dropped and counted", func(t *testing.T, r *evidence.Recorder, s *table) {
		s.set(true, false)
		for i := range 50_000 {
			o := outcome(fmt.Sprint("evt_", i), telemetry.ResultReplay)
			r.Record(&o)
		}
		time.Sleep(time.Second)
		s.set(false, false)
		time.Sleep(20 * time.Second)
		if s.deliveries()+int(r.Dropped()) != 50_000 || r.Dropped() < 30_000 {
			t.Errorf("%d written, %d dropped", s.deliveries(), r.Dropped())
		}
		time.Sleep(time.Minute)
		o := outcome("evt_more", telemetry.ResultReplay)
		dropped := r.Dropped()
		r.Record(&o)
		if r.Dropped() != dropped {
			t.Error("there is no room again")
		}
	})
	bubble(t, "long keys are bounded in bytes", func(t *testing.T, r *evidence.Recorder, s *table) {
		s.set(true, false)
		for i := range 4000 {
			o := outcome(fmt.Sprint("evt_", i, strings.Repeat("x", 16<<10)), telemetry.ResultReplay)
			r.Record(&o)
		}
		if n := r.Dropped(); n < 3400 {
			t.Errorf("%d dropped: too much is in memory", n)
		}
		s.set(false, false)
	})
	bubble(t, "a storm that comes while rows are written does not make more of them", func(t *testing.T, r *evidence.Recorder, s *table) {
		o := outcome("evt_1", telemetry.ResultReplay)
		r.Record(&o)
		s.mu.Lock()
		s.meanwhile = func() { r.Record(&o) }
		s.mu.Unlock()
		time.Sleep(10 * time.Second)
		if n := s.writes(); n > 11 {
			t.Errorf("%d rows were written in ten seconds", n)
		}
		s.mu.Lock()
		s.meanwhile = nil
		s.mu.Unlock()
	})
	bubble(t, "a batch is evidence about each of its events", func(t *testing.T, r *evidence.Recorder, s *table) {
		o := outcome("evt_1", telemetry.ResultFresh)
		o.MoreKeys = []string{"evt_2", "evt_3"}
		r.Record(&o)
		time.Sleep(2 * time.Second)
		if len(s.all()) != 3 {
			t.Errorf("%d rows", len(s.all()))
		}
	})
	bubble(t, "what a witness said", func(t *testing.T, r *evidence.Recorder, s *table) {
		key := lock.KeyOf("shop", "stripe", "evt_1")
		for range 3 {
			r.Witnessed(key, "evt_1", lock.TestifyNothing, errOut)
		}
		r.Witnessed(key, "evt_1", lock.TestifyYes, nil)
		time.Sleep(2 * time.Second)
		if len(s.all()) != 2 || s.deliveries() != 4 {
			t.Errorf("%+v", s.all())
		}
		for _, e := range s.all() {
			if e.Kind != evidence.KindWitness || e.Key != key || (e.Result == "nothing") != (e.Detail == "out") {
				t.Errorf("%+v", e)
			}
		}
	})
	bubble(t, "B59 a witness that is asked for a day leaves a row an hour", func(t *testing.T, r *evidence.Recorder, s *table) {
		key := lock.KeyOf("shop", "stripe", "evt_1")
		for range 24 * 360 {
			r.Witnessed(key, "evt_1", lock.TestifyNothing, errOut)
			time.Sleep(10 * time.Second)
		}
		if n := len(s.all()); n != 24 || s.deliveries() != 24*360 {
			t.Errorf("%d rows for %d questions", n, s.deliveries())
		}
	})
	bubble(t, "the end writes what is left", func(t *testing.T, r *evidence.Recorder, s *table) {
		o := outcome("evt_1", telemetry.ResultFresh)
		r.Record(&o)
		r.Close(t.Context())
		if s.deliveries() != 1 {
			t.Errorf("%d deliveries", s.deliveries())
		}
	})
	bubble(t, "what is past retention is removed", func(t *testing.T, _ *evidence.Recorder, s *table) {
		time.Sleep(2 * time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		if age := time.Since(s.purged); age < time.Hour || age > 62*time.Minute {
			t.Errorf("removed what is older than %s", age)
		}
	})
	bubble(t, "B59 what is past retention is removed as fast as it came", func(t *testing.T, r *evidence.Recorder, s *table) {
		s.mu.Lock()
		s.old = 100_000
		s.mu.Unlock()
		for range 60 {
			if s.left() == 0 {
				break
			}
			time.Sleep(time.Second)
		}
		if n := s.left(); n != 0 {
			t.Errorf("%d are left after a minute", n)
		}
		if time.Since(r.Purged()) > time.Minute {
			t.Errorf("removed last at %v", r.Purged())
		}
		s.mu.Lock()
		s.kept = true
		s.mu.Unlock()
		time.Sleep(10 * time.Minute)
		if age := time.Since(r.Purged()); age < 9*time.Minute {
			t.Errorf("a purge that fails counts as one that did its work %v ago", age)
		}
		o := outcome("evt_1", telemetry.ResultFresh)
		r.Record(&o)
		time.Sleep(2 * time.Second)
		if s.deliveries() != 1 {
			t.Error("what can't be removed keeps what is new from being written")
		}
	})
	bubble(t, "an observed delivery is evidence as any other", func(t *testing.T, r *evidence.Recorder, s *table) {
		for range 1000 {
			o := outcome("evt_1", telemetry.ResultObserved)
			o.Attempt = 0
			r.Record(&o)
		}
		time.Sleep(2 * time.Second)
		if len(s.all()) != 1 || s.deliveries() != 1000 || len(r.Refused()) != 0 {
			t.Errorf("%d rows for %d deliveries, %d samples", len(s.all()), s.deliveries(), len(r.Refused()))
		}
	})
	bubble(t, "what nothing proves can't fill the store", func(t *testing.T, r *evidence.Recorder, s *table) {
		for minute := range 2 {
			for i := range 10_000 {
				o := outcome(fmt.Sprint("evt_", minute, "_", i), telemetry.ResultObserved)
				o.Unproven = true
				r.Record(&o)
			}
			proven := outcome(fmt.Sprint("evt_mine", minute), telemetry.ResultFresh)
			r.Record(&proven)
			time.Sleep(time.Minute)
		}
		if n := len(s.all()); n != 2*(4096+1) {
			t.Errorf("%d rows in two minutes", n)
		}
		if s.deliveries()+int(r.Dropped()) != 20_002 {
			t.Errorf("%d written, %d dropped", s.deliveries(), r.Dropped())
		}
	})
	bubble(t, "many events a second, for long, are all written", func(t *testing.T, r *evidence.Recorder, s *table) {
		const seconds, each = 90, 2000
		for second := range seconds {
			for i := range each {
				o := outcome(fmt.Sprint("evt_", second, "_", i), telemetry.ResultFresh)
				r.Record(&o)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		if s.deliveries() != seconds*each || r.Dropped() != 0 {
			t.Errorf("%d of %d written, %d dropped", s.deliveries(), seconds*each, r.Dropped())
		}
	})
	bubble(t, "what the app answered is kept with its attempt, and bounded", func(t *testing.T, r *evidence.Recorder, s *table) {
		o := outcome("evt_1", telemetry.ResultFailed)
		o.AppStatus, o.AppSize = 500, 9000
		o.AppAnswer = &lock.Answer{Status: 500, Header: []lock.Line{{Name: "Content-Type", Value: "text/html"}}, Body: []byte("oops")}
		r.Record(&o)
		time.Sleep(2 * time.Second)
		for _, e := range s.all() {
			a := e.Answer
			if a == nil || a.Size != 9000 || a.Kept != 4 || string(a.Body) != "oops" || a.Header[0].Value != "text/html" || e.AppStatus != 500 {
				t.Errorf("%+v", a)
			}
		}
		s.set(true, false)
		for i := range 10_000 {
			o := outcome(fmt.Sprint("evt_", i), telemetry.ResultFailed)
			o.AppAnswer = &lock.Answer{Body: make([]byte, 4<<10)}
			r.Record(&o)
		}
		if n := r.Dropped(); n < 6000 {
			t.Errorf("%d of 10 000 dropped: too much is in memory", n)
		}
		s.set(false, false)
	})
	bubble(t, "what is refused leaves no trace but a sample", func(t *testing.T, r *evidence.Recorder, s *table) {
		for i := range 1000 {
			o := telemetry.Outcome{Route: "stripe", Result: telemetry.ResultUnverified, Status: 401, At: time.Now(), Detail: fmt.Sprint(i)}
			r.Record(&o)
		}
		watched := outcome("", telemetry.ResultObserved)
		r.Record(&watched)
		time.Sleep(2 * time.Second)
		samples := r.Refused()
		if len(s.all()) != 0 || len(samples) != 256 || samples[0].Result != "observed" || samples[1].Detail != "999" || samples[255].Detail != "745" {
			t.Errorf("%d rows, %d samples, the first %+v", len(s.all()), len(samples), samples[:2])
		}
	})
}

// What evidence costs a replay, in its way.
func BenchmarkRecord(b *testing.B) {
	r := evidence.NewRecorder(evidence.Options{
		Namespace: "shop", Store: &table{rows: map[evidence.ID]evidence.Entry{}}, Retention: time.Hour, Log: slog.New(slog.DiscardHandler),
	})
	defer r.Close(context.Background())
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		o := outcome("evt_1", telemetry.ResultReplay)
		for pb.Next() {
			r.Record(&o)
		}
	})
}
