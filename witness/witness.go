package witness

import (
	"context"
	"fmt"
	"strconv"

	"oncegate/keyextract"
)

// An Answer is what a witness says.
type Answer uint8

const (
	// Unknown: it could not be learned; ask again.
	Unknown Answer = iota
	// Yes: the effect exists.
	Yes
	// No: the effect can't be seen.
	No
	// Retry: nobody can be asked; go on as with on_unknown: retry.
	Retry
	// Hold: nobody can be asked; go on as with on_unknown: hold.
	Hold
)

// String returns the answer's word.
func (a Answer) String() string { return [...]string{"unknown", "yes", "no", "retry", "hold"}[a] }

// Ask asks, by the first rule that is for the delivery, whether the event has
// had its effect. Where the answer is Unknown, the error, an *Error, says why.
func (r *Rules) Ask(ctx context.Context, doc *keyextract.Document) (Answer, error) {
	for i := range r.rules {
		rule := &r.rules[i]
		if rule.when != nil {
			holds, err := rule.when.Holds(doc)
			if err != nil {
				return Unknown, &Error{i, err}
			}
			if !holds {
				continue
			}
		}
		if rule.other != Unknown {
			return rule.other, nil
		}
		answer, err := r.ask(ctx, rule, doc)
		if err != nil {
			return Unknown, &Error{i, err}
		}
		return answer, nil
	}
	return Hold, nil
}

func (r *Rules) ask(ctx context.Context, rule *rule, doc *keyextract.Document) (Answer, error) {
	found, err := rule.with.Extract(doc)
	if err != nil {
		return Unknown, err
	}
	names := rule.names()
	values := make(map[string]any, len(names))
	for _, name := range names {
		v, ok := found.Named[name]
		if !ok || v.Text == "" {
			return Unknown, fmt.Errorf("%w: %s is not in the delivery", ErrValue, name)
		}
		values[name] = rule.value(v)
	}
	if rule.sql != nil {
		return rule.sql.ask(ctx, values)
	}
	return r.web.ask(ctx, rule.http, values)
}

// names returns the names of the values that the question needs.
func (r *rule) names() []string {
	if r.sql != nil {
		return r.sql.names
	}
	return r.http.names
}

// value makes of a value what is bound. PostgreSQL reads a text as whatever the
// place needs, exactly; elsewhere a number is one, as far as it fits.
func (r *rule) value(v keyextract.Value) any {
	if r.sql == nil || r.sql.db.kind == postgres {
		return v.Text
	}
	switch v.Kind {
	case keyextract.Number:
		if n, err := strconv.ParseInt(v.Text, 10, 64); err == nil {
			return n
		}
	case keyextract.Bool:
		return v.Text == "true"
	}
	return v.Text
}
