package sqlitelock_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/sqlitelock"
)

const fileVariable = "SQLITELOCK_TEST_FILE"

// TestMain makes this binary the counting process where the variable is set.
func TestMain(m *testing.M) {
	if path := os.Getenv(fileVariable); path != "" {
		if err := count(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// count adds deliveries to a record for ever, and prints a line after each
// that stands.
func count(path string) error {
	s := sqlitelock.Open(path, sqlitelock.Options{})
	k := locktest.Begin("counter").Next.Key
	for {
		records, err := s.Read(context.Background(), []lock.Key{k})
		if err != nil {
			return err
		}
		c := lock.Change{Expect: records[0].Version, Next: records[0]}
		c.Next.Version = lock.NewVersion()
		c.Next.Deliveries++
		results, err := s.Apply(context.Background(), []lock.Change{c})
		if err != nil {
			return err
		}
		if results[0].Applied(c) {
			fmt.Println("counted")
		}
	}
}

// Several processes count on one file, and are killed at any point: every
// count that was told stands, and none was made over another.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claims.db")
	s := open(t, path, sqlitelock.Options{})
	c := locktest.Begin("counter")
	if err := apply(s, c); err != nil {
		t.Fatal(err)
	}
	const processes, enough = 4, 30
	var told atomic.Int64
	var wg sync.WaitGroup
	for range processes {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fileVariable+"="+path)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			n := int64(0)
			for lines := bufio.NewScanner(out); lines.Scan(); n++ {
				if n == enough {
					cmd.Process.Kill()
				}
			}
			if err := cmd.Wait(); n < enough {
				t.Errorf("a process ended after %d counts: %v", n, err)
			}
			told.Add(n)
		})
	}
	wg.Wait()
	records, err := s.Read(t.Context(), []lock.Key{c.Next.Key})
	if err != nil {
		t.Fatal(err)
	}
	stands, told64 := int64(records[0].Deliveries), told.Load()
	if stands < told64 || stands > told64+processes {
		t.Fatalf("%d counts were told and %d stand", told64, stands)
	}
}
