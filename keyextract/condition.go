package keyextract

import (
	"fmt"
	"slices"
)

// A Match is a compiled Condition. It does not change and may be used
// concurrently.
type Match struct {
	all     []*Match
	part    *part
	in      []string
	equals  *string
	present *bool
}

// CompileCondition checks a Condition and makes it ready. Its error is of type
// Faults.
func CompileCondition(s Condition) (*Match, error) {
	c := &compiler{}
	m := c.condition("", s, 0)
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return m, nil
}

// maxConditionDepth bounds the nesting of All.
const maxConditionDepth = 8

func (c *compiler) condition(field string, s Condition, depth int) *Match {
	p := s.part()
	if len(s.All) > 0 {
		if len(p.places()) > 0 || s.In != nil || s.Equals != nil || s.Present != nil {
			c.fault(dotted(field, "all"), "stands alone, without a place")
		}
		if depth == maxConditionDepth {
			c.fault(dotted(field, "all"), "nested too deep")
			return nil
		}
		m := &Match{}
		for i, each := range s.All {
			m.all = append(m.all, c.condition(dotted(field, fmt.Sprintf("all[%d]", i)), each, depth+1))
		}
		return m
	}
	if len(s.In) == 0 && s.Equals == nil && s.Present == nil {
		c.fault(dotted(field, "in"), "say what is asked of the value: in, equals or present")
	}
	if s.Present != nil && !*s.Present && (len(s.In) > 0 || s.Equals != nil) {
		c.fault(dotted(field, "present"), "what is not present can't equal anything")
	}
	return &Match{part: c.part(field, p, false), in: s.In, equals: s.Equals, present: s.Present}
}

func (s *Condition) part() Part {
	return Part{JSON: s.JSON, Header: s.Header, Query: s.Query, Form: s.Form,
		XML: s.XML, Path: s.Path, Method: s.Method, As: s.As}
}

func dotted(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// Holds reports whether the condition holds. Its error is an *Error of kind
// Malformed: a place that can't be read in one certain way. Members of All after
// the first that does not hold are not read.
func (m *Match) Holds(doc *Document) (bool, error) {
	for _, each := range m.all {
		if ok, err := each.Holds(doc); err != nil || !ok {
			return false, err
		}
	}
	if m.part == nil {
		return true, nil
	}
	v, err := m.part.read(doc, item{})
	if err != nil {
		return false, err
	}
	if m.present != nil && *m.present != (v.Kind != 0) {
		return false, nil
	}
	if m.equals != nil && !(v.readable() && v.Text == *m.equals) {
		return false, nil
	}
	return len(m.in) == 0 || v.readable() && slices.Contains(m.in, v.Text), nil
}

// ReadsJSON reports whether the condition, or one of those within, is asked of
// the body as JSON.
func (m *Match) ReadsJSON() bool {
	return m.part != nil && m.part.in == inJSON || slices.ContainsFunc(m.all, (*Match).ReadsJSON)
}
