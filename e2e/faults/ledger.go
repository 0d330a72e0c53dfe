package faults

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A ledger is the file in which the app writes down what it does. Each line is
// one write to the end of the file, so that it stands although the process is
// killed next.
type ledger struct{ file *os.File }

func openLedger(path string) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	return &ledger{f}, err
}

// What a line says of a run.
const (
	began  = "began"
	effect = "effect"
	ended  = "ended"
)

func (l *ledger) write(kind string, r *Run) error {
	_, err := fmt.Fprintf(l.file, "%s\t%d\t%s\t%s\t%d\t%d\n", kind, time.Now().UnixNano(), r.ID, r.Event, r.Attempt, r.Gate)
	return err
}

// A Run is one run of the app on an event.
type Run struct {
	ID      string
	Event   string
	Attempt int
	Gate    int // by whom it was forwarded
	Began   time.Time
	Effect  time.Time // zero: it had none
	Ended   time.Time // zero: the app was killed
}

// readLedger returns the runs in the order in which they began.
func readLedger(path string) ([]*Run, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseLedger(string(text))
}

func parseLedger(text string) ([]*Run, error) {
	var runs []*Run
	known := map[string]*Run{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 6 {
			return nil, fmt.Errorf("the ledger holds %q", line)
		}
		at, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the ledger holds %q: %w", line, err)
		}
		r := known[f[2]]
		if r == nil {
			r = &Run{ID: f[2], Event: f[3]}
			if r.Attempt, err = strconv.Atoi(f[4]); err != nil {
				return nil, fmt.Errorf("the ledger holds %q: %w", line, err)
			}
			if r.Gate, err = strconv.Atoi(f[5]); err != nil {
				return nil, fmt.Errorf("the ledger holds %q: %w", line, err)
			}
			known[r.ID] = r
			runs = append(runs, r)
		}
		switch when := time.Unix(0, at); f[0] {
		case began:
			r.Began = when
		case effect:
			r.Effect = when
		case ended:
			r.Ended = when
		}
	}
	slices.SortStableFunc(runs, func(a, b *Run) int { return a.Began.Compare(b.Began) })
	return runs, nil
}

// hasEffect reports whether the ledger knows of an effect of the event's.
func hasEffect(path, event string) (bool, error) {
	runs, err := readLedger(path)
	return slices.ContainsFunc(runs, func(r *Run) bool { return r.Event == event && !r.Effect.IsZero() }), err
}
