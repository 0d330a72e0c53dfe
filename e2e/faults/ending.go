package faults

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// The limits that worlds run under. A run, what the wire holds it up, and a
// pause of the app fit in appLimit together.
const (
	lease           = time.Second // the shortest that there is
	appLimit        = 4500 * time.Millisecond
	upstreamTimeout = 2 * time.Second
	// runLimit is when the app gives a run up.
	runLimit = 2900 * time.Millisecond
	// mostAppPause is the longest that the app is stopped.
	mostAppPause = 800 * time.Millisecond
	// mostDelay is the longest that a wire holds anything up.
	mostDelay = 300 * time.Millisecond
	// mostAppCut is the longest that the network to the app is cut: a request that
	// is lost in it comes up to twice as late.
	mostAppCut = 300 * time.Millisecond
	// mostOff is how far the store's clock may be off. It is added to the app limit
	// where clocks are: so much of it may be taken away.
	mostOff = 2500 * time.Millisecond
)

// An Ending says what the app does with an attempt.
type Ending struct {
	Name string
	// Work is how long it works before its effect, or before it ends without.
	Work   time.Duration
	Effect bool
	// Linger is how long it stays silent after that.
	Linger time.Duration
	// Status is what it answers; 0: nothing.
	Status int
	// Early answers before the work, as a gateway does whose backend goes on.
	Early bool
	// Break says how the connection ends: "" it stays, "reset", or after a part
	// of the answer, "head" or "body".
	Break string
}

// Clean reports whether a run that ends so gives no reason for another.
func (e Ending) Clean() bool { return e.Status == 200 && e.Break == "" && e.Work < upstreamTimeout/2 }

// Done reports whether it answers a whole 2xx.
func (e Ending) Done() bool { return e.Status == 200 && e.Break == "" }

const ms = time.Millisecond

func good(chance *rand.Rand) Ending {
	if chance.IntN(4) == 0 {
		return Ending{Name: "slow", Work: between(chance, 300*ms, 800*ms), Effect: true, Status: 200}
	}
	return Ending{Name: "ok", Work: between(chance, 2*ms, 80*ms), Effect: true, Status: 200}
}

func bad(chance *rand.Rand) Ending {
	w := between(chance, 2*ms, 250*ms)
	all := []Ending{
		{Name: "200 too late", Work: upstreamTimeout + between(chance, 100*ms, 600*ms), Effect: true, Status: 200},
		{Name: "500 before", Work: w, Status: 500},
		{Name: "500 after", Work: w, Effect: true, Status: 500},
		{Name: "503", Work: w, Status: 503},
		{Name: "404", Work: w, Status: 404},
		{Name: "504 and goes on", Work: between(chance, 300*ms, 1500*ms), Effect: true, Status: 504, Early: true},
		{Name: "502 before", Work: w, Status: 502},
		{Name: "reset before", Work: w, Break: "reset"},
		{Name: "reset after", Work: w, Effect: true, Break: "reset"},
		{Name: "reset, and goes on", Work: between(chance, 300*ms, 1500*ms), Effect: true, Early: true, Break: "reset"},
		{Name: "cut in the head", Work: w, Effect: true, Status: 200, Break: "head"},
		{Name: "cut in the body", Work: w, Effect: true, Status: 200, Break: "body"},
		{Name: "hang before", Work: w, Linger: 2200 * ms, Break: "reset"},
		{Name: "hang after", Work: w, Effect: true, Linger: 2200 * ms, Break: "reset"},
	}
	return all[chance.IntN(len(all))]
}

// EndingOf returns how an attempt of an event ends in the world of a seed. From
// the fourth attempt on the app works.
func EndingOf(seed int64, event string, attempt int) Ending {
	h := fnv.New64a()
	_, _ = h.Write([]byte(event)) // it never fails
	chance := rand.New(rand.NewPCG(uint64(seed), h.Sum64()+uint64(attempt)))
	if attempt >= 4 || chance.IntN(2) == 0 {
		return good(chance)
	}
	return bad(chance)
}

func between(chance *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(chance.Int64N(int64(high-low)+1))
}
