//go:build mutation

package lock_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutations takes away one protection of the protocol at a time, and holds
// the other tests to notice it. It works on a copy of the module, and takes some
// minutes:
//
//	go test -tags mutation ./lock -run TestMutations -timeout 30m
func TestMutations(t *testing.T) {
	copied := copyModule(t)
	for _, m := range []struct{ name, file, old, new string }{
		{"a holder is whoever has the token, in any state", "attempt.go",
			`return r.Token == t && (r.State == StateRunning || r.State == StateUnknown)`, `return r.Token == t`},
		{"a fenced holder writes on", "attempt.go",
			`return r.Token == t && (r.State == StateRunning || r.State == StateUnknown)`, `return true`},
		{"a holder gives up when its lease was found over", "attempt.go",
			`return r.Token == t && (r.State == StateRunning || r.State == StateUnknown)`, `return r.Token == t && r.State == StateRunning`},
		{"the first byte is sent on any lease", "attempt.go",
			`for !a.fenced && time.Since(a.leaseFrom) >= a.ask.Policy.Lease {`, `for false {`},
		{"no renewals", "attempt.go",
			`if a.over || a.fenced {`, `if true {`},
		{"a renewal keeps the lapse as an ending", "attempt.go",
			`c.rec.Version = r.Standing.Version`, `c.rec = r.Standing`},
		{"renewals before the first byte leave out the app limit", "attempt.go",
			`runsUntil := p.Lease + p.AppLimit`, `runsUntil := a.appLeft()`},
		{"begin leaves out the app limit", "decide.go",
			`RunsUntil:  ask.Policy.Lease + ask.Policy.AppLimit,`, `RunsUntil:  0,`},
		{"a takeover does not wait for the app", "decide.go",
			`if r.RunsUntil > 0 && `, `if false && `},
		{"a lease that is over is taken straight", "decide.go",
			`return meansLapsed, 0`, `return meansBegin, 0`},
		{"a lapse is no doubt", "decide.go",
			`next.Mark |= MarkDoubt`, `next.Mark |= 0`},
		{"hold does not hold", "decide.go",
			`if p.OnUnknown == HoldUnknown || `, `if `},
		{"attempts without an answer are not counted", "decide.go",
			`next.Unanswered = r.Unanswered`, `next.Unanswered = 0`},
		{"doubt ends with a release", "decide.go",
			`next.Mark |= r.Mark & MarkDoubt`, `next.Mark |= 0`},
		{"an unknown that may run on has ended", "settle.go",
			`next.RunsUntil = a.appLeft()`, `next.RunsUntil = 0`},
		{"what is released may expire a claim still unknown", "settle.go",
			`next.Mark |= MarkDoubt`, `next.Mark |= 0`},
		{"a given-up begin is not undone", "asking.go",
			`undos = append(undos, undoOf(&batch[i], ask.Policy))`, `_ = undoOf`},
		{"an undo forgets the absent record", "debt.go",
			`case !st.Exists() && begin.Expect == None, heldBy(st, d.token):`, `case heldBy(st, d.token):`},
		{"an undo leaves an older record's version", "debt.go",
			`case st.Exists() && st.Version == begin.Expect:`, `case false:`},
		{"a late 2xx is dropped", "debt.go",
			`case StateUnknown, StateReleased:`, `case StateTombstone:`},
		{"a late 2xx does not wait for the running attempt", "debt.go",
			`return debtWaits`, `return debtPaid`},
		{"a late 2xx overrules an operator", "debt.go",
			`|| n.Mark&markWords != st.Mark&markWords`, ``},
		{"an operator's word is forgotten with the next attempt", "decide.go",
			`next.Mark = r.Mark & markWords`, `next.Mark = 0`},
		{"any late ending is written", "debt.go",
			`if n.State != StateDone || `, `if `},
		{"what is owed does not keep its key", "asking.go",
			`if q.g.owed.holds(c.item.Key) {`, `if q.g.owed.holds(Key{Namespace: c.item.Text}) {`},
		{"what is owed is not renewed", "debt.go",
			`if d.undo != nil || d.fenced || `, `if true || d.undo != nil || d.fenced || `},
		{"what the last process owed is not renewed", "journal_debt.go",
			`d.held, d.lease = s.Held, s.Lease`, `d.held, d.lease = s.Held, 0`},
		{"a debt waits for a dead attempt", "pay.go",
			`if d.standing.Lease <= 0 {`, `if false {`},
		{"one bad debt stops the others", "owed.go",
			`o.debts = append(first, failed...)`, `o.debts = append(failed, first...)`},
		{"no bound on what is owed", "asking.go",
			`if q.g.owed.full() {`, `if false {`},
		{"memory is as old as its reply", "memory.go",
			`e := remembered{rec: &kept, at: at}`, `e := remembered{rec: &kept, at: time.Now()}`},
		{"memory never ends", "memory.go",
			`if !ok || time.Since(e.at) >= memoryLife {`, `if !ok {`},
		{"memory has no bound", "memory.go",
			`m.bytes > m.limit ||`, ``},
		{"verbs return at once", "verbs.go",
			`timer := time.NewTimer(memoryLife)`, `timer := time.NewTimer(0)`},
		{"a cut counts as a word on the effect", "verbs.go",
			`next.Mark = next.Mark&^markWords | r.Mark&markWords | MarkDoubt`, `next.Mark |= MarkDoubt`},
		{"an operator's holder stays the holder", "verbs.go",
			`next.Version, next.Token = NewVersion(), NewToken()`, `next.Version = NewVersion()`},
		{"sets keep what they can't have together", "asking.go",
			`q.drop(ctx, waits)`, `_ = waits`},
		{"a set is begun in the delivery's order", "ask.go",
			`return bytes.Compare(x.Key.Digest[:], y.Key.Digest[:])`, `return bytes.Compare(nil, y.Key.Digest[:])`},
		{"every duplicate asks for itself", "flight.go",
			`f := g.flights[id]`, `f := g.flights[Digest{}]`},
		{"the sender's patience ends the attempt", "attempt.go",
			`func (a *Attempt) Context() context.Context { return a.g.life }`, `func (a *Attempt) Context() context.Context { return a.renewing }`},
		{"a key travels twice in a trip", "group.go",
			`if full || l.clash(taken, c.asked) {`, `if full || len(taken) > 0 {`},
		{"a short-lived caller ends the trip of all", "group.go",
			`if c.until.After(leader.until) {`, `if false {`},
		{"those who begin go before those who settle", "group.go",
			`for _, urgent := range [2]bool{true, false} {`, `for _, urgent := range [2]bool{false, true} {`},
		{"one bad change fails its trip", "group.go",
			`alone := err != nil && len(c.batch) > 1 && `, `alone := false && `},
		{"a no is believed at once", "witness.go",
			`		s.testimony, s.err = g.question(ctx, r, request, p)
	}`, `	}`},
		{"a no counts while the app may be running", "witness.go",
			`if r.RunsUntil > 0 && `, `if false && `},
		{"a no counts for any version", "witness.go",
			`if _, s.err = g.apply(ctx, []Change{{Expect: r.Version,`, `now, _ := g.read(ctx, []Key{r.Key})
	if _, s.err = g.apply(ctx, []Change{{Expect: now[0].Version,`},
		{"a failed question is an answer", "witness.go",
			`t = TestifyNothing`, `_ = TestifyNothing`},
		{"the sweep does not sweep", "sweep.go",
			`if r := &records[i]; r.Role == RoleEvent`, `if r := &records[i]; r.Role == RoleTurn`},
		{"the sweep asks while the app may be running", "sweep.go",
			`State: StateUnknown, RunsOver: true}`, `State: StateUnknown}`},
		{"every replica has the duty", "duty.go",
			`r.State == StateRunning && r.Lease > 0 && r.Token != d.token`, `r.Lease > time.Hour`},
		{"the duty is not given back", "background.go",
			`if err := b.duty.give(last); err != nil {`, `if err := last.Err(); err != nil {`},
		{"the journal is not read", "gate.go",
			`if found := o.Journal.take(); len(found) > 0 {`, `if found := o.Journal.take(); false {`},
		{"the journal is not written", "owed.go",
			`if err := o.journal.write(entries); err != nil {`, `if err := error(nil); err != nil || len(entries) < 0 {`},
		{"the journal believes a wrong checksum", "journal_file.go",
			`if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {`, `if crc32.Checksum(payload, castagnoli) == 0 {`},
	} {
		t.Run(m.name, func(t *testing.T) {
			path := filepath.Join(copied, "lock", m.file)
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(source), m.old) < 1 {
				t.Fatalf("%s has no longer %q", m.file, m.old)
			}
			mutated := strings.Replace(string(source), m.old, m.new, 1)
			if err := os.WriteFile(path, []byte(mutated), 0o600); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := os.WriteFile(path, source, 0o600); err != nil {
					t.Error(err)
				}
			}()
			out, err := testCopy(copied, "-vet=off", "-run", "^$")
			if err != nil {
				t.Fatalf("does not build: %s", out)
			}
			if out, err = testCopy(copied, "-vet=off", "-timeout", "60s", "-histories", "400", "-failfast"); err == nil {
				t.Error("no test notices")
			}
			t.Log(noticed(out))
		})
	}
}

// noticed returns which test failed, and how.
func noticed(out string) string {
	var lines []string
	for _, l := range strings.Split(out, "\n") {
		if strings.Contains(l, "--- FAIL") || strings.HasPrefix(l, "panic") {
			lines = append(lines, strings.TrimSpace(l))
		}
	}
	return strings.Join(lines, "; ")
}

func testCopy(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"test", "./lock"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// copyModule copies what the tests of this package need.
func copyModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".", "internal/calls", "locktest", "memlock", "../internal/bug"} {
		if err := os.MkdirAll(filepath.Join(dir, "lock", name), 0o700); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(name, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "lock", f), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}
