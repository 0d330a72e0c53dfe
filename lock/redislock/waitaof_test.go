package redislock_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oncegate/internal/testenv"
	"oncegate/lock"
	"oncegate/lock/locktest"
	"oncegate/lock/redislock"
)

func TestValkey(t *testing.T) {
	locktest.Run(t, fixtures(testenv.Valkey(t)))
}

// B63: where the server has WAITAOF, replicas must have a change on their disks;
// and an older server that takes over is waited for as it can be.
func TestReplicasOnDisk(t *testing.T) {
	primary := testenv.Valkey(t, "repl-diskless-sync-delay 0")
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := testenv.Valkey(t, "replicaof "+host+" "+port)
	s := opened(t, redislock.Options{URL: primary.URL, Replicas: 1})
	apply := func(c lock.Change) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Apply(ctx, []lock.Change{c})
		return err
	}
	await(t, func() bool { return apply(locktest.Begin("first")) == nil })

	t.Run("B63 a replica that has it, but not on its disk", func(t *testing.T) {
		do(t, raw(t, replica.Addr), "CONFIG", "SET", "appendonly", "no")
		if err := apply(locktest.Begin("in memory")); !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("with a replica that keeps nothing on disk: %v", err)
		}
		do(t, raw(t, replica.Addr), "CONFIG", "SET", "appendonly", "yes")
		await(t, func() bool { return apply(locktest.Begin("on disk")) == nil })
	})
	t.Run("B63 a replica that does not follow", func(t *testing.T) {
		replica.Pause(t)
		if err := apply(locktest.Begin("alone")); !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("with no replica that follows: %v", err)
		}
		replica.Resume(t)
		await(t, func() bool { return apply(locktest.Begin("followed")) == nil })
	})
	t.Run("B63 a server without it takes over", func(t *testing.T) {
		primary.Stop(t)
		file, err := os.OpenFile(filepath.Join(primary.Dir, "redis.conf"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteString("rename-command WAITAOF \"\"\n")
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		primary.Start(t)
		await(t, func() bool { return apply(locktest.Begin("taken over")) == nil })
	})
	replica.Kill(t) // it does not end while it writes its log anew, as after a sync
}
