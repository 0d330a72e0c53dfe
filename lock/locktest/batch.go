package locktest

import (
	"fmt"
	"slices"

	"oncegate/lock"
)

var batchCases = []testCase{
	{"nothing is asked of an empty batch", func(p *place) {
		p.sendAll()
		p.readAll()
	}},
	{"each change has its own result, in order", func(p *place) {
		standing := p.applied(begin("stands"))
		running := p.applied(begin("runs"))
		settle := done(running, "x")
		batch := []lock.Change{begin("z"), begin("stands"), settle, begin("a"), renewed(begin("absent").Next)}
		results := p.sendAll(batch...)
		for i, want := range []bool{true, false, true, true, false} {
			if results[i].Applied(batch[i]) != want {
				p.Errorf("change %d: applied is %v", i, !want)
			}
		}
		p.same(results[1].Standing, standing)
		p.same(results[2].Standing, settle.Next)
		p.same(results[4].Standing, lock.Record{})
		records := p.readAll(batch[4].Next.Key, batch[0].Next.Key, running.Key, standing.Key, batch[3].Next.Key)
		p.same(records[0], lock.Record{})
		p.same(records[1], batch[0].Next)
		p.same(records[2], settle.Next)
		p.same(records[3], standing)
		p.same(records[4], batch[3].Next)
	}},
	{"a large batch", func(p *place) {
		var batch []lock.Change
		var keys []lock.Key
		for i := range 300 {
			c := begin(fmt.Sprint("event-", i))
			batch, keys = append(batch, c), append(keys, c.Next.Key)
		}
		for i, r := range p.sendAll(batch...) {
			if !r.Applied(batch[i]) {
				p.Fatalf("change %d refused", i)
			}
			batch[i] = done(r.Standing, fmt.Sprint("answer-", i))
		}
		p.sendAll(batch...)
		slices.Reverse(keys)
		for i, r := range p.readAll(keys...) {
			p.same(r, batch[len(batch)-1-i].Next)
		}
	}},
	{"a key may be read twice in one call", func(p *place) {
		r := p.applied(begin("e"))
		for _, got := range p.readAll(r.Key, r.Key, r.Key) {
			p.same(got, r)
		}
	}},
	{"the caller's slices stay the caller's", func(p *place) {
		c := begin("e")
		c.Next.Request = []byte("request")
		batch := []lock.Change{c}
		result := p.sendAll(batch...)[0]
		batch[0].Next.Request[0] = 'X'
		batch[0].Next.Tags[0] = "X"
		got := p.read(c.Next.Key)
		if string(got.Request) != "request" || got.Tags[0] != "order=e" {
			p.Fatal("the store keeps the caller's slices")
		}
		result.Standing.Tags[0] = "Y"
		got.Request[0] = 'Z'
		if again := p.read(c.Next.Key); string(again.Request) != "request" || again.Tags[0] != "order=e" {
			p.Fatal("the store hands out its own slices")
		}
	}},
}
