package locktest

import (
	"time"

	"oncegate/lock"
)

var changeCases = []testCase{
	{"nothing stands under a new key", func(p *place) {
		p.same(p.read(key("e")), lock.Record{})
	}},
	{"begin, renew, done", func(p *place) {
		b := begin("e")
		r := p.applied(b)
		p.same(r, b.Next)
		p.same(p.read(r.Key), b.Next)
		p.pass(5 * time.Minute)
		c := renewed(r)
		r = p.applied(c)
		want := c.Next
		want.FirstSeen, want.LastSeen = 5*time.Minute, 5*time.Minute
		p.same(r, want)
		c = done(r, "thanks")
		r = p.applied(c)
		want = c.Next
		p.same(r, want)
		p.same(p.read(r.Key), want)
	}},
	{"none is refused over every state", func(p *place) {
		r := p.applied(begin("e"))
		p.refused(begin("e"), r)
		r = p.applied(unknown(r))
		p.refused(begin("e"), r)
		r = p.applied(released(r))
		p.refused(begin("e"), r)
		r = p.applied(done(r, "x"))
		p.refused(begin("e"), r)
		r = p.applied(tombstone(r))
		p.refused(begin("e"), r)
		r = p.applied(alias("a", "e"))
		p.refused(alias("a", "other"), r)
	}},
	{"a version is refused where there is no record", func(p *place) {
		c := renewed(begin("e").Next)
		p.refused(c, lock.Record{})
	}},
	{"B26 the late owner changes nothing of its successor's", func(p *place) {
		a := p.applied(begin("e"))
		p.pass(time.Hour)
		b := p.applied(takeover(p.applied(unknown(a))))
		for _, late := range []lock.Change{renewed(a), done(a, "A"), released(a), unknown(a)} {
			p.refused(late, b)
		}
		b = p.applied(done(b, "B"))
		for _, late := range []lock.Change{renewed(a), done(a, "A"), released(a), unknown(a)} {
			p.refused(late, b)
		}
	}},
	{"a late renewal does not turn done back into running", func(p *place) {
		r := p.applied(begin("e"))
		late := renewed(r)
		p.refused(late, p.applied(done(r, "x")))
	}},
	{"of two changes from one version only the first is applied", func(p *place) {
		r := p.applied(begin("e"))
		one, two := done(r, "one"), done(r, "two")
		stands := p.applied(two)
		p.refused(one, stands)
	}},
	{"B24 a lapsed claim is still there, and is taken over", func(p *place) {
		r := p.applied(begin("e"))
		p.pass(90 * 24 * time.Hour)
		r = p.read(r.Key)
		if r.State != lock.StateRunning || r.Lease > -80*24*time.Hour {
			p.Fatalf("got %s with lease %v", brief(r), r.Lease)
		}
		r = p.applied(takeover(p.applied(unknown(r))))
		if r.Attempt != 2 || r.Unanswered != 1 || r.Mark&lock.MarkDoubt == 0 {
			p.Fatalf("got %+v", r)
		}
	}},
	{"a tombstone is begun over by its version", func(p *place) {
		r := p.applied(begin("e"))
		r = p.applied(takeover(p.applied(unknown(r))))
		r = p.applied(tombstone(p.applied(done(r, "x"))))
		if r.Text != "" || r.Payload != (lock.Digest{}) || len(r.AnswerBody) != 0 || len(r.Tags) != 0 {
			p.Fatalf("the tombstone keeps more than it was given: %+v", r)
		}
		r = p.applied(takeover(r))
		if r.Attempt != 3 {
			p.Fatalf("attempt %d after a tombstone of 2", r.Attempt)
		}
	}},
	{"B16 the payload's digest stands whatever another delivery brings", func(p *place) {
		r := p.applied(begin("e"))
		other := begin("e")
		other.Next.Payload = lock.Digest{1}
		p.refused(other, r)
		p.refused(other, p.applied(done(r, "x")))
	}},
	{"a change takes every field anew", func(p *place) {
		r := p.applied(begin("e"))
		r = p.applied(next(r, func(n *lock.Record) {
			n.Request, n.Group, n.Due = []byte("request"), "object-1", time.Hour
			n.AnswerHeader, n.AnswerBody = []byte("h"), []byte("b")
		}))
		c := next(r, func(n *lock.Record) {
			n.Request, n.Group, n.Due, n.Tags = nil, "", 0, nil
			n.AnswerHeader, n.AnswerBody = nil, nil
		})
		p.same(p.applied(c), c.Next)
		got := p.read(r.Key)
		p.same(got, c.Next)
		if got.Request != nil {
			p.Fatal("no request reads as an empty one")
		}
	}},
}
