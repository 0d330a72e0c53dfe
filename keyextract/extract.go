package keyextract

import "oncegate/internal/delivery"

// Rules are a compiled Spec. They don't change and may be used concurrently.
type Rules struct{}

// Compile checks a Spec and makes it ready. Its error is Faults.
func Compile(s Spec) (*Rules, error) { return &Rules{}, nil }

// A Document is a delivery made ready for reading. One goroutine uses it.
type Document struct{ d *delivery.Delivery }

// Parse makes a delivery ready for reading.
func Parse(d *delivery.Delivery) *Document { return &Document{d: d} }

// Extract reads what the rules ask for.
func (r *Rules) Extract(doc *Document) (Values, error) { return Values{}, nil }

// A Match is a compiled Condition. It may be used concurrently.
type Match struct{}

// CompileCondition checks a Condition and makes it ready. Its error is Faults.
func CompileCondition(c Condition) (*Match, error) { return &Match{}, nil }

// Holds reports whether the condition holds.
func (m *Match) Holds(doc *Document) (bool, error) { return false, nil }
