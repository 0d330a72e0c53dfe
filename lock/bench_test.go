package lock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/lock"
	"oncegate/lock/memlock"
)

// BenchmarkGate shows what the Gate costs above a store that costs nothing.
func BenchmarkGate(b *testing.B) {
	var n atomic.Int64
	fresh := func(b *testing.B, g *lock.Gate) {
		d := g.Begin(context.Background(), ask(fmt.Sprint("evt_", n.Add(1))))
		if d.Verdict != lock.Run || d.Attempt.Start() != nil || d.Attempt.Settle(done("ok")) != lock.SettleStands {
			b.Error("not fresh")
		}
	}
	replay := func(b *testing.B, g *lock.Gate) {
		if d := g.Begin(context.Background(), ask("evt_old")); d.Verdict != lock.Replay {
			b.Error("no replay")
		}
	}
	for _, c := range []struct {
		name   string
		memory int64
		once   func(*testing.B, *lock.Gate)
	}{{"fresh", 0, fresh}, {"replay", 0, replay}, {"remembered", 1 << 20, replay}} {
		for _, goroutines := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/%d", c.name, goroutines), func(b *testing.B) {
				g := lock.NewGate(memlock.New(), lock.Options{Memory: c.memory, StoreTimeout: 10 * time.Second})
				g.Begin(context.Background(), ask("evt_old")).Attempt.Settle(done("old"))
				b.ReportAllocs()
				b.SetParallelism(max(1, goroutines/2)) // of two processors
				if goroutines == 1 {
					for b.Loop() {
						c.once(b, g)
					}
				} else {
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							c.once(b, g)
						}
					})
				}
				if err := g.Close(context.Background()); err != nil {
					b.Error(err)
				}
			})
		}
	}
}
