package config

import "oncegate/keyextract"

// compileBatch says what the app gets of a batch, and refuses what can't be
// right with one.
func (l *loader) compileBatch(field string, spec routeSpec, p policy, rules keyextract.Spec, r *Route) {
	l.oneOf(field+".batch", spec.Batch, "whole", "split")
	r.Batches = rules.Each != ""
	if r.Batches && len(rules.Guard) > 0 {
		l.fault(field+".guard", "can't stand beside each: it is a second key of one event, and a batch holds several")
	}
	if does := value(p.OnMismatch); r.Batches && (does == "refuse" || does == "run") && !l.faulty(field+".on_mismatch") {
		l.fault(field+".on_mismatch", "%s can't stand beside each: a batch that is cut anew has another body, and holds the same events; say on_mismatch: replay on this route", does)
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
