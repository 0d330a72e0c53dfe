package provider

import (
	"net/http"

	"oncegate/internal/delivery"
	"oncegate/keyextract"
)

// KeySpec returns the preset's key rule.
func (p *Preset) KeySpec() keyextract.Spec {
	return keyextract.Spec{Key: p.Key, Each: p.Each, Guard: p.Guard, Tags: p.Tags}
}

// Delivery returns the sample as a delivery that isn't signed yet: see
// verify.Verifier's Complete, which signs it. Where the sample names no target
// it is the one given.
func (p *Preset) Delivery(target string) *delivery.Delivery {
	d := &delivery.Delivery{Method: p.Sample.Method, Target: p.Sample.Target, Header: http.Header{}, Body: []byte(p.Sample.Body)}
	if d.Target == "" {
		d.Target = target
	}
	for name, value := range p.Sample.Header {
		d.Header.Set(name, value)
	}
	return d
}
