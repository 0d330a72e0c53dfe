package telemetry

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A heldReader takes nothing until it is let go.
type heldReader struct {
	held chan struct{}
	mu   sync.Mutex // guards b
	b    bytes.Buffer
}

func (h *heldReader) Write(p []byte) (int, error) {
	<-h.held
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(p)
}

// Whoever logs does not wait for the log's reader. What does not fit is counted and
// told of, and the rest comes in order.
func TestLogReaderStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := &heldReader{held: make(chan struct{})}
		w := NewLogWriter(reader)
		log := NewLogger(w, slog.LevelInfo)
		began := time.Now()
		for i := range mostLines + 1000 {
			log.Info("delivery", "n", i)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("logging took %s", took)
		}
		if lost := w.Lost(); lost < 900 || lost > 1000 {
			t.Errorf("%d lines are lost", lost)
		}
		close(reader.held)
		synctest.Wait()
		log.Info("after")
		w.Close(time.Second)
		lines := strings.Split(strings.TrimSpace(reader.b.String()), "\n")
		if !strings.Contains(lines[0], `"n":0}`) || !strings.Contains(lines[len(lines)-1], "after") {
			t.Errorf("from %s to %s", lines[0], lines[len(lines)-1])
		}
		if got := strings.Count(reader.b.String(), "lines of this log were lost"); got != 1 {
			t.Errorf("told %d times that lines were lost", got)
		}
		if want := mostLines + 1000 - int(w.Lost()) + 2; len(lines) != want {
			t.Errorf("%d lines, not %d", len(lines), want)
		}
	})
}

// Large lines are bounded by their bytes.
func TestLogOfLargeLines(t *testing.T) {
	reader := &heldReader{held: make(chan struct{})}
	w := NewLogWriter(reader)
	line := bytes.Repeat([]byte("x"), 1<<20)
	for range 10 {
		if n, err := w.Write(line); n != len(line) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if lost := w.Lost(); lost != 6 {
		t.Errorf("%d lines are lost", lost)
	}
	close(reader.held)
	w.Close(time.Minute)
	if reader.b.Len() < 4<<20 {
		t.Errorf("%d bytes are written", reader.b.Len())
	}
}

// A fullDisk takes nothing until there is room.
type fullDisk struct {
	room bool
	b    bytes.Buffer
}

func (d *fullDisk) Write(p []byte) (int, error) {
	if !d.room {
		return 0, syscall.ENOSPC
	}
	return d.b.Write(p)
}

// What a full disk did not take is counted and told of, too.
func TestLogOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &fullDisk{}
		w := NewLogWriter(disk)
		for range 3 {
			_, _ = w.Write([]byte("lost\n"))
		}
		synctest.Wait()
		disk.room = true
		_, _ = w.Write([]byte("kept\n"))
		w.Close(time.Second)
		if text := disk.b.String(); w.Lost() != 3 || !strings.HasPrefix(text, "kept\n{") || !strings.Contains(text, `"lines":3`) {
			t.Errorf("%d lost: %s", w.Lost(), text)
		}
	})
}

// The end does not wait for a reader that takes nothing.
func TestLogClosesWithoutReader(t *testing.T) {
	reader := &heldReader{held: make(chan struct{})}
	w := NewLogWriter(reader)
	_, _ = w.Write([]byte("line\n"))
	w.Close(time.Millisecond)
	close(reader.held)
	w.Close(time.Minute)
	if reader.b.String() != "line\n" {
		t.Errorf("%q", reader.b.String())
	}
}
