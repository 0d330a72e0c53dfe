package proxy

import (
	"oncegate/internal/delivery"
	"oncegate/lock"
)

// describing are headers that say something of the body's own bytes.
var describing = []string{"Content-Encoding", "Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}

// portion returns what of the delivery goes to the app, and which events that
// are. Of a batch some of whose events are done it is the whole batch, since a
// signature over it fits nothing else; or, where the route says so, the new
// events alone.
func (p *passage) portion(a *lock.Attempt, keys []string) (*delivery.Delivery, []string) {
	fresh := a.Claimed()
	done := len(keys) - len(fresh)
	if !p.r.SplitBatches {
		p.out.Repeats = done
		return p.delivery, keys
	}
	body, cut, err := p.r.Rules.Only(p.doc, fresh)
	if err != nil || !cut { // no error: the keys were read in the same way
		p.out.Repeats = done
		return p.delivery, keys
	}
	p.h.hand.hold(int64(len(body)))
	p.room += int64(len(body))
	p.out.LeftOut = done
	return withBody(p.delivery, body), fresh
}

// withBody returns a delivery that has another body.
func withBody(d *delivery.Delivery, body []byte) *delivery.Delivery {
	other := *d
	other.Body = body
	other.Header = d.Header.Clone()
	for _, name := range describing {
		delete(other.Header, name)
	}
	return &other
}
