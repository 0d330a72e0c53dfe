package locktest

import (
	"testing"
	"time"

	"oncegate/lock"
)

// LostReplies shows that a store takes a lost reply for what it is. The store
// is reached through the proxy, and its connections are warm. B64: a begin
// whose reply is lost finds its own version and is told to be applied, and so
// is every later change; it never takes its own claim for another's.
func LostReplies(t *testing.T, s Store, p *Proxy) {
	t.Run("B64 replies are lost", func(t *testing.T) {
		at := &place{TB: t, s: s}
		at.read(key("warm"))
		for _, text := range []string{"one", "two", "three", "four", "five"} {
			before := p.Lost()
			p.Lose(1)
			r := at.applied(begin(text))
			if p.Lost() == before {
				t.Fatal("no reply was lost")
			}
			p.Lose(1)
			at.applied(done(r, "x"))
			p.Lose(1)
			if got := at.read(r.Key); got.State != lock.StateDone {
				t.Fatalf("read %s", brief(got))
			}
		}
	})
}

// ReadsDoNotStarveWrites shows that those who read, be they ever so many and ever
// so slow, leave a connection to those who renew and settle. The store, whose pool
// lets that many reads go on at a time, is reached through the proxy.
func ReadsDoNotStarveWrites(t *testing.T, s Store, p *Proxy, reads int) {
	t.Run("B57 reads that hang leave a connection to those who write", func(t *testing.T) {
		at := &place{TB: t, s: s}
		running := at.applied(begin("running"))
		p.Hold()
		defer p.Release()
		ended := make(chan error)
		const readers = 30
		for range readers {
			go func() {
				_, err := s.Read(t.Context(), []lock.Key{running.Key})
				ended <- err
			}()
		}
		for start := time.Now(); p.Held() < reads; time.Sleep(time.Millisecond) {
			if time.Since(start) > 10*time.Second {
				t.Fatalf("%d reads are under way, not %d", p.Held(), reads)
			}
		}
		p.Pass()
		at.applied(done(at.applied(renewed(running)), "answer"))
		p.Release()
		for range readers {
			if err := <-ended; err != nil {
				t.Errorf("read: %v", err)
			}
		}
	})
}
