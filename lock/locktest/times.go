package locktest

import (
	"time"

	"oncegate/lock"
)

var timeCases = []testCase{
	{"what is left shrinks, and turns into how long it has been over", func(p *place) {
		b := begin("e")
		b.Next.Due = 15 * time.Minute
		b.Next.Group = "object-1"
		p.applied(b)
		for _, passed := range []time.Duration{3 * time.Minute, 30 * time.Minute, 48 * time.Hour} {
			before := p.read(b.Next.Key)
			p.pass(passed)
			want := before
			want.Lease -= passed
			want.RunsUntil -= passed
			want.Due -= passed
			want.FirstSeen += passed
			want.LastSeen += passed
			want.Written += passed
			p.same(p.read(b.Next.Key), want)
		}
	}},
	{"first seen is kept until a record is begun anew", func(p *place) {
		r := p.applied(begin("e"))
		p.pass(time.Hour)
		r = p.applied(unknown(r))
		p.pass(time.Hour)
		r = p.applied(takeover(r))
		if (r.FirstSeen - 2*time.Hour).Abs() > slack {
			p.Fatalf("first seen %v ago", r.FirstSeen)
		}
		p.applied(done(r, "x"))
		p.pass(2 * retain)
		r = p.applied(begin("e"))
		if r.FirstSeen > slack || r.LastSeen > slack {
			p.Fatalf("begun anew, and first seen %v, last seen %v ago", r.FirstSeen, r.LastSeen)
		}
	}},
	{"last seen moves with deliveries alone, written with every change", func(p *place) {
		r := p.applied(begin("e"))
		p.pass(time.Hour)
		r = p.applied(unknown(r))
		if (r.LastSeen-time.Hour).Abs() > slack || r.Written > slack {
			p.Fatalf("last seen %v, written %v ago", r.LastSeen, r.Written)
		}
		p.pass(time.Hour)
		r = p.applied(takeover(r))
		if r.LastSeen > slack || r.Written > slack {
			p.Fatalf("last seen %v, written %v ago", r.LastSeen, r.Written)
		}
		p.pass(time.Hour)
		r = p.read(r.Key)
		if (r.LastSeen-time.Hour).Abs() > slack || (r.Written-time.Hour).Abs() > slack {
			p.Fatalf("last seen %v, written %v ago", r.LastSeen, r.Written)
		}
	}},
	{"a record begun without a delivery has all its times", func(p *place) {
		b := begin("e")
		b.Seen = false
		p.applied(b)
		p.pass(time.Hour)
		r := p.read(b.Next.Key)
		for _, d := range []time.Duration{r.FirstSeen, r.LastSeen, r.Written} {
			if (d - time.Hour).Abs() > slack {
				p.Fatalf("first seen %v, last seen %v, written %v ago", r.FirstSeen, r.LastSeen, r.Written)
			}
		}
	}},
	{"what the change says of the past is ignored", func(p *place) {
		b := begin("e")
		b.Next.FirstSeen, b.Next.LastSeen, b.Next.Written = time.Hour, time.Hour, time.Hour
		r := p.applied(b)
		if r.FirstSeen > slack || r.LastSeen > slack || r.Written > slack {
			p.Fatalf("first seen %v, last seen %v, written %v ago", r.FirstSeen, r.LastSeen, r.Written)
		}
	}},
	{"a lease may be given that is over", func(p *place) {
		b := begin("e")
		b.Next.Lease, b.Next.RunsUntil = -time.Hour, 0
		p.same(p.applied(b), b.Next)
		if r := p.read(b.Next.Key); r.Lease > -time.Hour+slack || r.RunsUntil > 0 {
			p.Fatalf("lease %v, runs until %v", r.Lease, r.RunsUntil)
		}
	}},
	{"no due time stays none", func(p *place) {
		p.applied(begin("e"))
		p.pass(time.Hour)
		if r := p.read(key("e")); r.Due != 0 {
			p.Fatalf("due in %v", r.Due)
		}
	}},
	{"a due time that has come is not none", func(p *place) {
		b := begin("e")
		b.Next.Due = time.Nanosecond
		p.applied(b)
		if r := p.read(b.Next.Key); r.Due >= 0 {
			p.Fatalf("due in %v", r.Due)
		}
	}},
	{"the longest duration fits", func(p *place) {
		b := begin("e")
		b.Next.Lease, b.Next.RunsUntil = 100*365*24*time.Hour, 100*365*24*time.Hour
		p.same(p.applied(b), b.Next)
		p.same(p.read(b.Next.Key), b.Next)
	}},
}

// atRest makes the records that retention may remove, each from nothing.
var atRest = []struct {
	name string
	make func(*place, string) lock.Record
}{
	{"done", func(p *place, text string) lock.Record { return p.applied(done(p.applied(begin(text)), "old")) }},
	{"released", func(p *place, text string) lock.Record { return p.applied(released(p.applied(begin(text)))) }},
	{"tombstone", func(p *place, text string) lock.Record {
		return p.applied(tombstone(p.applied(released(p.applied(begin(text))))))
	}},
	{"alias", func(p *place, text string) lock.Record { return p.applied(alias(text, "other")) }},
}

var retentionCases = []testCase{
	{"a record past its retention is not there", func(p *place) {
		for _, k := range atRest {
			r := k.make(p, k.name)
			p.pass(retain - time.Hour)
			if got := p.read(r.Key); !got.Exists() {
				p.Fatalf("%s is gone before its time", k.name)
			}
			p.pass(2 * time.Hour)
			p.same(p.read(r.Key), lock.Record{})
			p.refused(takeover(r), lock.Record{})
		}
	}},
	{"none holds over it, and nothing of it is left", func(p *place) {
		for _, k := range atRest {
			r := k.make(p, k.name)
			p.pass(2 * retain)
			b := begin(k.name)
			b.Next.Payload = lock.Digest{7}
			p.same(p.applied(b), b.Next)
			p.same(p.read(r.Key), b.Next)
		}
	}},
	{"running and unknown are kept for ever", func(p *place) {
		b := begin("e")
		b.Next.Retain = time.Minute
		r := p.applied(b)
		p.pass(1000 * retain)
		p.refused(begin("e"), p.read(r.Key))
		r = p.applied(next(r, func(n *lock.Record) { n.State, n.Retain = lock.StateUnknown, time.Minute }))
		if r.Retain != 0 {
			p.Fatalf("unknown is retained for %v", r.Retain)
		}
		p.pass(1000 * retain)
		r = p.read(r.Key)
		if r.State != lock.StateUnknown || r.Retain != 0 {
			p.Fatalf("got %s, retained for %v", brief(r), r.Retain)
		}
		p.refused(begin("e"), r)
	}},
	{"no retention is for ever", func(p *place) {
		d := done(p.applied(begin("e")), "x")
		d.Next.Retain = 0
		p.applied(d)
		p.pass(1000 * retain)
		r := p.read(d.Next.Key)
		if r.State != lock.StateDone || r.Retain != 0 {
			p.Fatalf("got %s, retained for %v", brief(r), r.Retain)
		}
		p.refused(begin("e"), r)
	}},
	{"retention counts from the last write", func(p *place) {
		r := p.applied(released(p.applied(begin("e"))))
		p.pass(retain - time.Hour)
		r = p.applied(next(r, func(n *lock.Record) { n.Retain = retain }))
		p.pass(retain - time.Hour)
		r = p.read(r.Key)
		if (r.Retain - time.Hour).Abs() > slack {
			p.Fatalf("retained for %v", r.Retain)
		}
	}},
	{"a new attempt ends the retention of the one before", func(p *place) {
		r := p.applied(takeover(p.applied(released(p.applied(begin("e"))))))
		p.pass(2 * retain)
		p.refused(begin("e"), p.read(r.Key))
	}},
}
