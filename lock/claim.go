package lock

import "time"

// A claim is what a flight knows of one item.
type claim struct {
	item  Item
	rec   Record
	known bool      // rec is what stood when the store was asked last
	asked bool      // the store was asked before
	mine  bool      // rec is running under the token of the attempt at hand, which then guards rec
	at    time.Time // when the question that rec answers was sent
	heard said      // what a witness said last
}

// means says what the claim means for a delivery: what its record does, and
// where that is for a witness to say, what the witness said.
func (c *claim) means(p *Policy) (meaning, time.Duration) {
	m, until := decide(&c.rec, p)
	if m != meansWitness || c.heard.version != c.rec.Version {
		return m, until
	}
	switch c.heard.testimony {
	case TestifyRetry:
		as := *p
		as.OnUnknown = RetryUnknown
		return decide(&c.rec, &as)
	case TestifyHold:
		return meansHeld, 0
	}
	return m, until
}
