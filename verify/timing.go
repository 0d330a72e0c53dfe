package verify

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// defaultTolerance is how far the time of signing may lie from the arrival,
// to both sides, where a scheme doesn't say.
const defaultTolerance = 5 * time.Minute

// timing is a compiled Time.
type timing struct {
	place     place // the zero place: in the signature
	unit      string
	tolerance time.Duration // 0: not judged
}

func compileTime(t *Time) (*timing, error) {
	c := &timing{unit: t.Unit, tolerance: defaultTolerance}
	if c.unit == "" {
		c.unit = "s"
	}
	if !slices.Contains([]string{"s", "ms", "auto", "rfc3339"}, c.unit) {
		return nil, fmt.Errorf("time.unit: %q is none of s, ms, auto, rfc3339", t.Unit)
	}
	if t.Tolerance != nil {
		c.tolerance = *t.Tolerance
	}
	if c.tolerance < 0 {
		return nil, errors.New("time.tolerance: is negative")
	}
	var err error
	c.place, err = onePlace(nil, t.Header, t.JSON, t.Form, t.Query)
	return c, err
}

// judge holds the time of signing against the arrival.
func (c *timing) judge(text string, arrived time.Time) error {
	signed, err := c.parse(text)
	if err != nil {
		return err
	}
	if c.tolerance == 0 {
		return nil
	}
	if off := arrived.Sub(signed); off > c.tolerance || off < -c.tolerance {
		side := "before"
		if off < 0 {
			off, side = -off, "after"
		}
		return &Error{Kind: Stale, Place: c.name(), Detail: fmt.Sprintf("signed %s %s it arrived, %s is allowed; is a clock wrong?", off.Round(time.Second), side, c.tolerance)}
	}
	return nil
}

// parse reads a time of signing: decimal digits and nothing else, or RFC 3339.
func (c *timing) parse(text string) (time.Time, error) {
	if c.unit == "rfc3339" {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil || len(text) > 40 {
			return time.Time{}, &Error{Kind: Malformed, Place: c.name(), Detail: "no time as in RFC 3339"}
		}
		return t, nil
	}
	// 13 digits of seconds are the year 33658, 16 of milliseconds likewise.
	longest := 12
	if c.unit != "s" {
		longest = 15
	}
	if !digits(text) || len(text) > longest || len(text) > 1 && text[0] == '0' {
		return time.Time{}, &Error{Kind: Malformed, Place: c.name(), Detail: "no decimal number of a possible length"}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, &Error{Kind: Malformed, Place: c.name(), Detail: "no decimal number"}
	}
	if c.unit == "ms" || c.unit == "auto" && len(text) > 11 {
		return time.UnixMilli(n), nil
	}
	return time.Unix(n, 0), nil
}

// write is parse's other direction.
func (c *timing) write(t time.Time) string {
	switch c.unit {
	case "rfc3339":
		return t.UTC().Format("2006-01-02T15:04:05Z")
	case "ms", "auto":
		return strconv.FormatInt(t.UnixMilli(), 10)
	}
	return strconv.FormatInt(t.Unix(), 10)
}

func (c *timing) name() string {
	if c.place.kind == "" {
		return "time in the signature"
	}
	return c.place.String()
}
