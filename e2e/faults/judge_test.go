package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// at is a moment of a made-up history, in milliseconds.
func at(n int) time.Time { return time.Unix(1000, int64(n)*int64(time.Millisecond)) }

// A made-up history is of an event whose first attempt ends well: eventGood
// finds its name.
const madeUp = 1

func eventGood(t *testing.T) string {
	t.Helper()
	for i := range 100 {
		name := fmt.Sprintf("evt_%d", i)
		if EndingOf(madeUp, name, 1).Clean() {
			return name
		}
	}
	t.Fatal("no event ends well")
	return ""
}

func run(event string, attempt, from int) *Run {
	return &Run{ID: fmt.Sprint(attempt, from), Event: event, Attempt: attempt, Began: at(from), Effect: at(from + 50), Ended: at(from + 60)}
}

func answered(r *Run, result string, when int) *Delivery {
	return &Delivery{Event: r.Event, Sent: at(0), Answered: at(when), Status: 200, Result: result, Body: []byte(receipt(r.ID))}
}

func TestJudge(t *testing.T) {
	e := eventGood(t)
	one, two := run(e, 1, 100), run(e, 2, 5000)
	broken := []Trouble{{What: "it", Gate: 0, From: at(90), To: at(4000)}}
	empty := answered(one, "replay", 300)
	empty.Body = nil
	other := answered(two, "replay", 6000)
	for name, c := range map[string]struct {
		record Record
		want   []Invariant
	}{
		"all is well": {Record{Runs: []*Run{one}, Deliveries: []*Delivery{answered(one, "fresh", 200), answered(one, "replay", 300)}}, nil},
		"a second run with a reason": {Record{
			Policy: Retry, Runs: []*Run{one, two}, Troubles: broken, Deliveries: []*Delivery{answered(two, "fresh", 5100), other},
		}, nil},
		"answered before the effect": {Record{Runs: []*Run{one}, Deliveries: []*Delivery{answered(one, "fresh", 120)}}, []Invariant{NoFalseAck}},
		"never answered":             {Record{Runs: []*Run{one}, Deliveries: []*Delivery{{Event: e, Status: 503}}}, []Invariant{NoneLost}},
		"two effects under hold": {Record{
			Policy: Hold, Runs: []*Run{one, two}, Troubles: broken, Deliveries: []*Delivery{answered(two, "fresh", 5100)},
		}, []Invariant{OneEffect}},
		"another gate was broken": {Record{
			Policy: Retry, Runs: []*Run{one, two}, Troubles: []Trouble{{Gate: 1, From: at(90), To: at(4000)}}, Deliveries: []*Delivery{answered(two, "fresh", 5100)},
		}, []Invariant{Justified}},
		"the store's clock was off": {Record{
			Policy: Retry, Runs: []*Run{one, two}, Troubles: []Trouble{{Gate: -1, From: at(90), To: at(4000), Harmless: true}},
			Moves: []Move{{From: at(120), To: at(121), By: time.Second}}, Deliveries: []*Delivery{answered(two, "fresh", 5100)},
		}, []Invariant{Justified}},
		"the store's clock leapt while it ran": {Record{
			Policy: Retry, Runs: []*Run{one, run(e, 2, 130)}, Deliveries: []*Delivery{answered(one, "fresh", 200)},
			Moves: []Move{{From: at(120), To: at(121), By: time.Minute, Leap: true}},
		}, nil},
		"the store's clock leapt when it was done": {Record{
			Policy: Retry, Runs: []*Run{one, two}, Deliveries: []*Delivery{answered(two, "fresh", 5100)},
			Moves: []Move{{From: at(3000), To: at(3001), By: time.Minute, Leap: true}},
		}, []Invariant{Justified}},
		"the app's answer was late": {Record{
			Policy: Retry, Runs: []*Run{one, two}, Deliveries: []*Delivery{answered(two, "fresh", 5100)},
			Exchanges: []*Exchange{{Event: e, Attempt: 1, Asked: at(100), Replied: at(1500)}},
		}, nil},
		"the app's answer was in time": {Record{
			Policy: Retry, Runs: []*Run{one, two}, Deliveries: []*Delivery{answered(two, "fresh", 5100)},
			Exchanges: []*Exchange{{Event: e, Attempt: 1, Asked: at(100), Replied: at(170)}},
		}, []Invariant{Justified}},
		"two runs with one number": {Record{
			Policy: Retry, Runs: []*Run{one, run(e, 1, 5000)}, Troubles: broken, Deliveries: []*Delivery{answered(one, "fresh", 200)},
		}, []Invariant{Announced}},
		"two runs at once, and the store's clock leapt too late for it": {Record{
			Policy: Retry, Runs: []*Run{one, run(e, 2, 130)}, Troubles: broken, Deliveries: []*Delivery{answered(one, "fresh", 200)},
			Moves: []Move{{From: at(140), To: at(141), By: time.Minute, Leap: true}},
		}, []Invariant{NoOverlap}},
		"two runs at once": {Record{
			Policy: Retry, Runs: []*Run{one, run(e, 2, 130)}, Troubles: broken, Deliveries: []*Delivery{answered(one, "fresh", 200)},
		}, []Invariant{NoOverlap}},
		"a run while one may go on that the app's death ended": {Record{
			Policy: Retry, Runs: []*Run{{ID: "x", Event: e, Attempt: 1, Began: at(100)}, run(e, 2, 130)}, AppDied: []time.Time{at(50), at(140)},
			Deliveries: []*Delivery{answered(run(e, 2, 130), "fresh", 200)},
		}, []Invariant{NoOverlap}},
		"a replay without its body": {Record{Policy: Retry, Runs: []*Run{one}, Deliveries: []*Delivery{answered(one, "fresh", 200), empty}}, []Invariant{SameReplays}},
		"two replays that differ": {Record{
			Policy: Retry, Runs: []*Run{one, two}, Troubles: broken, Deliveries: []*Delivery{answered(one, "replay", 300), other},
		}, []Invariant{SameReplays}},
		"a second run that nobody counted": {Record{
			Policy: Retry, Runs: []*Run{one, two}, Troubles: broken, Deliveries: []*Delivery{answered(two, "fresh", 5100)},
			Lives: []*Life{{From: at(0), Counted: []Count{{At: at(6000), N: 0}}}},
		}, []Invariant{Counted}},
		"a second run that its gate counted": {Record{
			Policy: Retry, Runs: []*Run{one, two}, Troubles: broken, Deliveries: []*Delivery{answered(two, "fresh", 5100)},
			Lives: []*Life{{From: at(0), Counted: []Count{{At: at(4000), N: 0}, {At: at(6000), N: 1}}}},
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.record.Seed, c.record.Events = madeUp, []string{e}
			var got []Invariant
			for _, v := range Judge(&c.record) {
				got = append(got, v.Invariant)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
