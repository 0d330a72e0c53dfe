package locktest

import (
	"time"

	"oncegate/lock"
)

var resendCases = []testCase{
	{"B64 a change sent again finds itself applied", func(p *place) {
		b := begin("e")
		p.applied(b)
		p.same(p.applied(b), b.Next)
		r := p.read(b.Next.Key)
		d := done(r, "x")
		p.applied(d)
		p.same(p.applied(d), d.Next)
	}},
	{"a change sent again moves no moment", func(p *place) {
		b := begin("e")
		p.applied(b)
		p.pass(7 * time.Minute)
		want := b.Next
		want.Lease -= 7 * time.Minute
		want.RunsUntil -= 7 * time.Minute
		want.FirstSeen, want.LastSeen, want.Written = 7*time.Minute, 7*time.Minute, 7*time.Minute
		p.same(p.applied(b), want)
		p.same(p.read(b.Next.Key), want)
	}},
	{"a change sent again after others' writes is refused", func(p *place) {
		b := begin("e")
		r := p.applied(b)
		un := unknown(r)
		u := p.applied(un)
		p.refused(b, u)
		to := takeover(u)
		r = p.applied(to)
		p.refused(b, r)
		p.refused(un, r)
		r = p.applied(done(r, "x"))
		p.refused(b, r)
		p.refused(un, r)
		p.refused(to, r)
	}},
	{"a begin that was undone is refused when it arrives after all", func(p *place) {
		b := begin("e")
		undo := b
		undo.Seen = false
		undo.Next.State, undo.Next.Reason = lock.StateReleased, lock.ReasonGivenUp
		undo.Next.Version, undo.Next.Retain = lock.NewVersion(), retain
		r := p.applied(undo)
		p.refused(b, r)
	}},
	{"a change sent again past retention writes nothing", func(p *place) {
		r := p.applied(begin("e"))
		d := done(r, "x")
		p.applied(d)
		p.pass(2 * retain)
		// It finds itself until it is purged, and nothing then.
		if got := p.send(d); !got.Applied(d) {
			p.same(got.Standing, lock.Record{})
		}
		p.same(p.read(r.Key), lock.Record{})
	}},
	{"a batch sent again finds each change as it is", func(p *place) {
		one, two, three := begin("1"), begin("2"), begin("3")
		p.sendAll(one, two, three)
		r2 := p.applied(done(two.Next, "x"))
		results := p.sendAll(three, two, one)
		if !results[0].Applied(three) || results[1].Applied(two) || !results[2].Applied(one) {
			p.Fatal("wrong results")
		}
		p.same(results[1].Standing, r2)
	}},
}
