package sqlevidence_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oncegate/internal/evidence"
	"oncegate/internal/evidence/sqlevidence"
)

// A file that may grow no more takes what is new, and the oldest goes.
func TestOldestMakesRoom(t *testing.T) {
	const (
		most  = 512 << 10
		batch = 125
	)
	path := filepath.Join(t.TempDir(), "evidence.db")
	s := must(t)(sqlevidence.SQLite(path, sqlevidence.Options{Most: most}))
	began := time.Now().UTC().Truncate(time.Microsecond)
	n := 0
	for range 40 { // some four times what fits
		var entries []evidence.Entry
		for range batch {
			e := entry(0, fmt.Sprint("evt_", n), began.Add(time.Duration(n)*time.Millisecond))
			if _, err := rand.Read(e.ID[:]); err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
			n++
		}
		if err := s.Write(t.Context(), entries); err != nil {
			t.Fatalf("after %d entries: %v", n, err)
		}
	}
	found, err := s.Find(t.Context(), evidence.Query{Namespace: "shop", Limit: n})
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, e := range found {
		kept[e.Facts.Text] = true
	}
	t.Logf("%d of %d entries are kept", len(found), n)
	if len(found) < n/10 || len(found) > n/2 {
		t.Errorf("%d of %d entries are kept", len(found), n)
	}
	// One after the other, up to the last one.
	for i := n - len(found); i < n; i++ {
		if !kept[fmt.Sprint("evt_", i)] {
			t.Fatalf("evt_%d is gone, and older ones are there", i)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > most {
		t.Errorf("the file has %d bytes, and may have %d (%v)", info.Size(), most, err)
	}
}
