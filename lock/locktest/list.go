package locktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oncegate/lock"
)

var listCases = []testCase{
	{"a listing is in order, whole, and in pages", func(p *place) {
		var want []lock.Key
		for i := range 25 {
			c := begin(fmt.Sprint("e", i))
			c.Next.Scope = []string{"a", "B", "a_", "b"}[i%4]
			want = append(want, p.applied(c).Key)
			c = begin(fmt.Sprint("e", i))
			c.Next.Namespace = "elsewhere"
			p.applied(c)
		}
		slices.SortFunc(want, func(a, b lock.Key) int {
			return strings.Compare(a.Scope+"\x00"+string(a.Digest[:]), b.Scope+"\x00"+string(b.Digest[:]))
		})
		for _, limit := range []int{1, 7, 25, 100} {
			var got []lock.Key
			for after := (lock.Cursor{}); len(got) <= len(want); {
				page := p.list(lock.Filter{Namespace: "suite"}, after, limit)
				for _, r := range page {
					got = append(got, r.Key)
				}
				if len(page) < limit {
					break
				}
				last := page[len(page)-1]
				after = lock.Cursor{Scope: last.Scope, Digest: last.Digest}
			}
			if !slices.Equal(got, want) {
				p.Fatalf("in pages of %d: %d records, not %d, or another order", limit, len(got), len(want))
			}
		}
	}},
	{"each filter selects", func(p *place) {
		p.applied(begin("running"))
		p.applied(done(p.applied(begin("done")), "x"))
		p.applied(released(p.applied(begin("released"))))
		p.applied(unknown(p.applied(begin("unknown"))))
		p.applied(alias("alias", "done"))
		turn := begin("turn")
		turn.Next.Role = lock.RoleTurn
		p.applied(turn)
		p.pass(90 * time.Minute)
		scope := begin("scope")
		scope.Next.Scope = "Orders"
		p.applied(scope)
		odd := begin(`odd_100%\'text`)
		odd.Next.Tags = []string{"a=1", `note=50%_'\ "x"`}
		p.applied(odd)
		p.applied(takeover(p.read(key("unknown"))))
		for _, c := range []struct {
			name string
			f    lock.Filter
			want string
		}{
			{"all", lock.Filter{}, `alias done odd_100%\'text released running scope turn unknown`},
			{"scope", lock.Filter{Scope: "Orders"}, "scope"},
			{"state", lock.Filter{State: lock.StateDone}, "done"},
			{"role", lock.Filter{Role: lock.RoleAlias}, "alias"},
			{"another role", lock.Filter{Role: lock.RoleTurn}, "turn"},
			{"part of the text", lock.Filter{TextPart: "un"}, "running unknown"},
			{"part of the text is no pattern", lock.Filter{TextPart: `d_100%\'t`}, `odd_100%\'text`},
			{"no text matches", lock.Filter{TextPart: "RUN"}, ""},
			{"tag", lock.Filter{Tag: "order=done"}, "done"},
			{"tag with odd bytes", lock.Filter{Tag: `note=50%_'\ "x"`}, `odd_100%\'text`},
			{"not part of a tag", lock.Filter{Tag: "order=don"}, ""},
			{"not the end of a tag", lock.Filter{Tag: "rder=done"}, ""},
			{"lease over", lock.Filter{LeaseOver: true}, "running turn"},
			{"runs over", lock.Filter{RunsOver: true, State: lock.StateRunning}, "running turn"},
			{"seen within", lock.Filter{SeenWithin: time.Hour}, `odd_100%\'text scope unknown`},
			{"not seen for", lock.Filter{NotSeenFor: time.Hour}, "alias done released running turn"},
			{"two at once", lock.Filter{NotSeenFor: time.Hour, State: lock.StateRunning, TextPart: "tu"}, "turn"},
		} {
			c.f.Namespace = "suite"
			var got []string
			for _, r := range p.list(c.f, lock.Cursor{}, 100) {
				got = append(got, r.Text)
			}
			slices.Sort(got)
			if strings.Join(got, " ") != c.want {
				p.Errorf("%s: got %q, not %q", c.name, got, c.want)
			}
		}
	}},
	{"a filter and pages go together", func(p *place) {
		for i := range 30 {
			r := p.applied(begin(fmt.Sprint("e", i)))
			if i%3 == 0 {
				p.applied(done(r, "x"))
			}
		}
		f := lock.Filter{Namespace: "suite", State: lock.StateDone, Tag: "order=e27"}
		if got := p.list(f, lock.Cursor{}, 1); len(got) != 1 || got[0].Text != "e27" {
			p.Errorf("got %d records", len(got))
		}
		f.Tag = ""
		if got := p.list(f, lock.Cursor{}, 10); len(got) != 10 {
			p.Errorf("got %d records", len(got))
		}
	}},
	{"what is listed is what stands", func(p *place) {
		c := done(p.applied(begin("e")), "body")
		want := p.applied(c)
		got := p.list(lock.Filter{Namespace: "suite"}, lock.Cursor{}, 10)
		if len(got) != 1 {
			p.Fatalf("got %d records", len(got))
		}
		got[0].AnswerBody, got[0].Request = want.AnswerBody, want.Request
		p.same(got[0], want)
	}},
	{"what is past retention is neither listed nor counted", func(p *place) {
		for _, k := range atRest {
			k.make(p, k.name)
		}
		p.pass(2 * retain)
		p.applied(begin("e"))
		if got := p.list(lock.Filter{Namespace: "suite"}, lock.Cursor{}, 100); len(got) != 1 {
			p.Errorf("%d records are listed", len(got))
		}
		p.counts(map[lock.ScopeState]int{{Scope: "orders", State: lock.StateRunning}: 1})
	}},
	{"B59 what is past retention and still there is counted apart", func(p *place) {
		for _, k := range atRest {
			k.make(p, k.name)
		}
		if n := p.over(); n != 0 {
			p.Errorf("%d are past retention, before any is", n)
		}
		p.pass(2 * retain)
		over := p.over()
		if n := p.purge("suite", 100); n != over {
			p.Errorf("%d were past retention, and %d were removed", over, n)
		}
		if n := p.over(); n != 0 {
			p.Errorf("%d are left", n)
		}
	}},
	{"counts are by scope and state", func(p *place) {
		p.counts(map[lock.ScopeState]int{})
		want := map[lock.ScopeState]int{}
		for i := range 12 {
			c := begin(fmt.Sprint("e", i))
			c.Next.Scope = []string{"a", "A", "b"}[i%3]
			r := p.applied(c)
			if i%2 == 0 {
				r = p.applied(done(r, "x"))
			}
			want[lock.ScopeState{Scope: r.Scope, State: r.State}]++
			c.Next.Namespace = "elsewhere"
			p.applied(c)
		}
		want[lock.ScopeState{Scope: p.applied(alias("alias", "e0")).Scope}]++
		p.counts(want)
	}},
}

func (p *place) list(f lock.Filter, after lock.Cursor, limit int) []lock.Record {
	p.Helper()
	records, err := p.s.List(p.Context(), f, after, limit)
	if err != nil {
		p.Fatalf("list: %v", err)
	}
	if len(records) > limit {
		p.Fatalf("list: %d records, over the limit of %d", len(records), limit)
	}
	return records
}

func (p *place) counts(want map[lock.ScopeState]int) {
	p.Helper()
	got, err := p.s.Count(p.Context(), "suite")
	if err != nil {
		p.Fatalf("count: %v", err)
	}
	if !maps.Equal(got.Claims, want) {
		p.Fatalf("counts are %v, not %v", got, want)
	}
}

// over is how many records are counted as past their retention.
func (p *place) over() int {
	p.Helper()
	got, err := p.s.Count(p.Context(), "suite")
	if err != nil {
		p.Fatalf("count: %v", err)
	}
	return got.Over
}
