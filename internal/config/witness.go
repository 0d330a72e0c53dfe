package config

import (
	"errors"
	"strings"

	"oncegate/witness"
)

// A RouteWitness is whom a route asks about an attempt whose outcome is unknown.
type RouteWitness struct {
	Rules []witness.Spec
	// DB is where SQL is asked; nil where no rule has any. It holds a password:
	// never printed.
	DB *witness.DatabaseSpec `json:"-"`
	// Status and Body are what deliveries get of an event whose effect was found.
	Status int
	Body   string
}

// compileWitness checks a route's rules and where they are asked. It asks
// nobody.
func (l *loader) compileWitness(field string, spec routeSpec, r *Route) {
	said := spec.Witness != nil || spec.WitnessDB != nil || spec.WitnessAnswer != nil
	switch {
	case r.OnUnknown != "witness" && said:
		l.fault(field+".witness", "has no meaning without on_unknown: witness")
		return
	case r.OnUnknown != "witness":
		return
	case len(spec.Witness) == 0:
		l.fault(field+".witness", "is missing: say whom to ask, or use on_unknown: hold")
		return
	}
	if r.Batches && r.Rules != nil {
		if err := r.Rules.CanSplit(); err != nil {
			l.fault(field+".on_unknown", "witness can't be asked about one event of such a batch alone: %s; use hold", err)
		}
	}
	w := &RouteWitness{Rules: spec.Witness, Status: 200}
	if a := spec.WitnessAnswer; a != nil {
		w.Status, w.Body = or(a.Status, 200), value(a.Body)
		if w.Status < 200 || w.Status > 299 {
			l.fault(field+".witness_answer.status", "must be between 200 and 299: that the effect exists is a success")
		}
	}
	var o witness.Options
	if spec.WitnessDB != nil {
		if o.Database = l.witnessDatabase(field+".witness_db", spec.WitnessDB, w); o.Database == nil {
			return // rules with SQL can't be judged
		}
		defer o.Database.Close() // it has connected to nobody
	}
	rules, err := witness.Compile(w.Rules, o)
	var faults witness.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			at, msg, _ := strings.Cut(f, " ")
			l.fault(field+"."+at, "%s", msg)
		}
		return
	}
	rules.Close()
	asksSQL := false
	for _, rule := range w.Rules {
		asksSQL = asksSQL || rule.SQL != ""
	}
	if spec.WitnessDB != nil && !asksSQL {
		l.fault(field+".witness_db", "is asked by no rule")
	}
	r.Witness = w
}

// witnessDatabase completes where SQL is asked, and opens it.
func (l *loader) witnessDatabase(field string, spec *witnessDBSpec, w *RouteWitness) *witness.Database {
	w.DB = &witness.DatabaseSpec{URL: value(spec.URL), User: value(spec.User)}
	if spec.Password != nil {
		w.DB.Password = l.secret(field+".password", *spec.Password)
	}
	if w.DB.URL == "" {
		l.fault(field+".url", "is missing: say where SQL is asked, as in mysql://127.0.0.1:3306/shop")
		return nil
	}
	db, err := witness.OpenDatabase(*w.DB)
	if err != nil {
		l.fault(field+".url", "%s", err)
		return nil
	}
	return db
}
