package config

import (
	"errors"
	"strconv"
	"strings"
)

var errStatuses = errors.New("must be a status (500) or a class (5xx) from 300 on, with a minus where it is to be taken out: [5xx, -503]")

// parseStatuses reads [5xx, -503] from left to right. It returns the index of
// the item that is none along with the error.
func parseStatuses(texts []string) (set StatusSet, err error) {
	for _, text := range texts {
		low, high, add, ok := statusRange(text)
		if !ok {
			return set, errStatuses
		}
		for status := low; status <= high; status++ {
			set[status] = add
		}
	}
	return set, nil
}

func statusRange(text string) (low, high int, add, ok bool) {
	rest, minus := strings.CutPrefix(text, "-")
	if class, isClass := strings.CutSuffix(rest, "xx"); isClass {
		n, err := strconv.Atoi(class)
		return n * 100, n*100 + 99, !minus, err == nil && len(class) == 1 && n >= 3 && n <= 5
	}
	n, err := strconv.Atoi(rest)
	return n, n, !minus, err == nil && len(rest) == 3 && n >= 300 && n <= 599
}

func (l *loader) unknownStatuses(field string, texts []string) {
	for i, text := range texts {
		if _, _, _, ok := statusRange(text); !ok {
			l.fault(item(field, i), "%s", errStatuses)
		}
	}
}
