package proxy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/delivery"
	"oncegate/keyextract"
	"oncegate/lock"
)

// guardPrefix keeps the digests of guards apart from those of event keys, whose
// text holds no space.
const guardPrefix = " guard "

// maxKept bounds what the events of one batch keep of its request, all together.
const maxKept = 64 << 20

// policyOf returns what a route says about its claims, as the Gate takes it.
func policyOf(r *config.Route, w lock.Witness) *lock.Policy {
	p := &lock.Policy{
		Lease: r.Lease, AppLimit: r.AppLimit, Retention: r.Retention, Attempts: r.Attempts,
		RefuseMismatch: r.OnMismatch == "refuse",
		KeepRequest:    r.Record == "unsettled" || r.Record == "full",
	}
	switch r.OnUnknown {
	case "hold":
		p.OnUnknown = lock.HoldUnknown
	case "witness":
		p.OnUnknown, p.Witness = lock.WitnessUnknown, w
		p.WitnessAnswer = &lock.Answer{Status: r.Witness.Status, Body: []byte(r.Witness.Body)}
	}
	p.KeepDone = keepDone(r)
	return p
}

// question makes of a delivery's values what the Gate is asked. The waiting time
// that is left counts from the delivery's arrival.
func (r *route) question(d *delivery.Delivery, v keyextract.Values) *lock.Ask {
	ask := &lock.Ask{
		Policy:  r.policy,
		Payload: r.payload(d),
		Tags:    v.Tags,
		Wait:    max(0, r.Wait-time.Since(d.Arrived)),
		// On every route a claim that becomes unknown takes its request along, so that
		// it can be run again. Each event of a batch would keep all of it.
		Request: func() []byte { return keepRequest(d) },
		Unkept:  len(v.Keys) > 1 && len(v.Keys)*len(d.Body) > maxKept,
	}
	for _, key := range v.Keys {
		ask.Items = append(ask.Items, lock.Item{Key: lock.KeyOf(r.namespace, r.Scope, key), Text: key})
	}
	if v.Guard != "" {
		ask.Guard = lock.Item{Key: lock.KeyOf(r.namespace, r.Scope, guardPrefix+v.Guard), Text: v.Guard}
	}
	return ask
}

// payload is the digest by which a differing payload is told: of the raw bytes,
// and of method and target where the route's kind of key covers these too.
func (r *route) payload(d *delivery.Delivery) (sum lock.Digest) {
	if !r.MismatchCoversTarget {
		return sha256.Sum256(d.Body)
	}
	h := sha256.New()
	var size [8]byte
	for _, part := range []string{d.Method, d.Target} {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	h.Write(d.Body)
	h.Sum(sum[:0])
	return sum
}

// eventHeader is what the app is told of the event: scope and key, visible
// ASCII. A key that is long, or a batch's many, are given by their digest.
func eventHeader(scope string, keys []string) string {
	const most = 256
	if len(keys) == 1 && len(keys[0]) <= most {
		return scope + ":" + keys[0]
	}
	sum := sha256.Sum256([]byte(strings.Join(keys, "\n")))
	return scope + ":sha256-" + hex.EncodeToString(sum[:])
}
