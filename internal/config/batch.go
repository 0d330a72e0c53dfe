package config

import "oncegate/keyextract"

// compileBatch says what the app gets of a batch, and refuses what can't be
// right with one.
func (l *loader) compileBatch(field string, spec routeSpec, rules keyextract.Spec, r *Route) {
	l.oneOf(field+".batch", spec.Batch, "whole", "split")
	if rules.Each != "" && len(rules.Guard) > 0 {
		l.fault(field+".guard", "can't stand beside each: it is a second key of one event, and a batch holds several")
	}
	if value(spec.Batch) != "split" || r.Rules == nil {
		return
	}
	if err := r.Rules.CanSplit(); err != nil {
		l.fault(field+".batch", "can't be split: %s", err)
		return
	}
	r.SplitBatches = true
}
