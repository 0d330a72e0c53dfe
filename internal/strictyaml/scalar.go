package strictyaml

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A Size is a number of bytes, written as in 5MiB, 256KiB, 25MB or 1024.
type Size int64

var (
	errDuration = errors.New("must be a duration such as 250ms, 30s, 1h30m or 35d")
	errSize     = errors.New("must be a size such as 256KiB, 5MiB, 25MB or a number of bytes")
)

// maxDays bounds durations to a century, far from overflow.
const maxDays = 36500

// ParseDuration reads a duration as Go writes them, with whole days before the
// rest: "250ms", "1h30m", "35d", "1d12h", "0". It is never negative. The error
// does not quote the text.
func ParseDuration(text string) (time.Duration, error) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, errDuration
	}
	var days int64
	if before, rest, found := strings.Cut(text, "d"); found {
		n, err := strconv.ParseUint(before, 10, 32)
		if err != nil || n > maxDays || (rest != "" && (rest[0] < '0' || rest[0] > '9')) {
			return 0, errDuration
		}
		if days, text = int64(n), rest; text == "" {
			text = "0"
		}
	}
	rest, err := time.ParseDuration(text)
	if total := time.Duration(days)*24*time.Hour + rest; err == nil && rest <= maxDays*24*time.Hour {
		return total, nil
	}
	return 0, errDuration
}

// ParseSize reads a size: a whole number, alone or with one of the units B, KB,
// MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024). The error does not
// quote the text.
func ParseSize(text string) (Size, error) {
	digits := strings.TrimRight(text, "BKMGi")
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0, errSize
	}
	var unit uint64
	switch text[len(digits):] {
	case "", "B":
		unit = 1
	case "KB":
		unit = 1e3
	case "MB":
		unit = 1e6
	case "GB":
		unit = 1e9
	case "KiB":
		unit = 1 << 10
	case "MiB":
		unit = 1 << 20
	case "GiB":
		unit = 1 << 30
	default:
		return 0, errSize
	}
	if n > math.MaxInt64/unit {
		return 0, errSize
	}
	return Size(n * unit), nil
}

// scalar decodes one scalar. What is written as a number, and wanted as text,
// is taken by its literal digits; true and false are not, since a person who
// writes them means no text.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, field string) {
	if n.Kind != yaml.ScalarNode {
		d.fault(n, field, "must be a single value, but is %s", kindName(n))
		return
	}
	text := n.Value
	if d.expand != nil && n.ShortTag() == "!!str" {
		expanded, err := d.expand(text)
		if err != nil {
			d.fault(n, field, "%s", err)
			return
		}
		text = expanded
	}
	if v.Kind() == reflect.String {
		if n.ShortTag() == "!!bool" {
			d.fault(n, field, "must be text, but is true or false; write it in quotes if it is meant")
			return
		}
		v.SetString(text)
		return
	}
	if err := setScalar(v, text); err != nil {
		d.fault(n, field, "%s", err)
	}
}

var (
	errBool   = errors.New("must be true or false")
	errNumber = errors.New("must be a whole number, without sign of thousands or leading zeros")
	errRange  = errors.New("is a number out of range")
	errFloat  = errors.New("must be a number")
)

func setScalar(v reflect.Value, text string) error {
	switch v.Type() {
	case durationType:
		duration, err := ParseDuration(text)
		if err == nil {
			v.SetInt(int64(duration))
		}
		return err
	case sizeType:
		size, err := ParseSize(text)
		if err == nil {
			v.SetInt(int64(size))
		}
		return err
	}
	switch v.Kind() {
	case reflect.Bool:
		if text != "true" && text != "false" {
			return errBool
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != text {
			return errNumber
		}
		if v.OverflowInt(n) {
			return errRange
		}
		v.SetInt(n)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return errFloat
		}
		v.SetFloat(f)
	default:
		panic("strictyaml: cannot decode into " + v.Type().String())
	}
	return nil
}
