package telemetry

import (
	"bytes"
	"encoding/json"
	"io"
	"sync/atomic"
	"time"
)

// A LogWriter takes a log's lines and writes them a moment later, so that nobody
// who logs waits for whoever reads the log: a terminal that is held, a pipe whose
// reader has stopped, a full disk. Lines that don't fit in memory meanwhile are
// lost, counted, and told of once lines are taken again.
//
// Its methods may be called concurrently.
type LogWriter struct {
	to     io.Writer
	lines  chan []byte
	size   atomic.Int64 // bytes of lines that are not written yet
	lost   atomic.Int64
	end    chan struct{}
	ended  chan struct{}
	closed atomic.Bool
}

// What is kept of a log that nobody reads.
const (
	mostLines    = 8192
	mostLogBytes = 4 << 20
)

// NewLogWriter returns a writer of lines to to. Close ends it.
func NewLogWriter(to io.Writer) *LogWriter {
	w := &LogWriter{to: to, lines: make(chan []byte, mostLines), end: make(chan struct{}), ended: make(chan struct{})}
	go w.run()
	return w
}

// Write takes one line, or loses it. It never waits and never fails.
func (w *LogWriter) Write(line []byte) (int, error) {
	n := int64(len(line))
	if w.size.Add(n) <= mostLogBytes {
		select {
		case w.lines <- bytes.Clone(line):
			return len(line), nil
		default:
		}
	}
	w.size.Add(-n)
	w.lost.Add(1)
	return len(line), nil
}

// Lost is how many lines were lost.
func (w *LogWriter) Lost() int64 { return w.lost.Load() }

// Close writes what is left, for as long as limit. What is not taken by then is
// given up, with the goroutine that waits for its reader.
func (w *LogWriter) Close(limit time.Duration) {
	if w.closed.CompareAndSwap(false, true) {
		close(w.end)
	}
	select {
	case <-w.ended:
	case <-time.After(limit):
	}
}

func (w *LogWriter) run() {
	defer close(w.ended)
	told := int64(0)
	for {
		select {
		case line := <-w.lines:
			w.write(line, &told)
			continue
		default:
		}
		select {
		case line := <-w.lines:
			w.write(line, &told)
		case <-w.end:
			if len(w.lines) == 0 {
				return
			}
		}
	}
}

// write writes a line, and tells what was lost before it. A line that is not taken
// is lost: there is nobody to tell of the error.
func (w *LogWriter) write(line []byte, told *int64) {
	_, err := w.to.Write(line)
	w.size.Add(-int64(len(line)))
	if err != nil {
		w.lost.Add(1)
		return
	}
	if lost := w.lost.Load(); lost > *told && w.size.Load() < mostLogBytes/2 {
		notice, err := json.Marshal(map[string]any{
			"time": time.Now().Format(time.RFC3339Nano), "level": "WARN",
			"msg": "lines of this log were lost: its reader was too slow, or took none", "lines": lost - *told,
		})
		if err == nil {
			_, _ = w.to.Write(append(notice, '\n'))
		}
		*told = lost
	}
}
