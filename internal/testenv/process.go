package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds how long a server may take to answer its first question,
// and stopTimeout how long it may take to end when asked to. A loaded machine
// with two cores needs seconds, not tens of them. statementTimeout is for
// statements that wait for the disk, as dropping a database does.
const (
	startTimeout     = 60 * time.Second
	stopTimeout      = 20 * time.Second
	statementTimeout = 2 * time.Minute
)

// A Command says how to run a program so that a test can rely on it.
type Command struct {
	// Name names the program in failures.
	Name string
	// Path and Args are the program and its arguments, without the name.
	Path string
	Args []string
	// Dir is its working folder; Env its whole environment, nil for the
	// test's own.
	Dir string
	Env []string
	// Unprivileged runs it as an ordinary user where the tests run as root.
	Unprivileged bool
	// Ready asks the program, in its own protocol, whether it serves. It is
	// asked until it returns nil. Nil means that nobody needs to ask.
	Ready func() error
	// StopSignal asks it to end in good order. Zero means SIGTERM.
	StopSignal syscall.Signal
	// DeathSignal is what the kernel sends it when the test binary dies. Zero
	// means SIGKILL; programs whose children outlive them need a milder one.
	DeathSignal syscall.Signal
}

// A Process is a program under a test's control. Its methods may be called
// from several goroutines.
type Process struct {
	command Command
	output  *Output

	mu    sync.Mutex // guards cmd and ended
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has been waited for
}

// Run starts a program, waits until it is ready, and stops it when the test
// ends. When the test has failed by then, the end of its output is logged.
func Run(t testing.TB, c Command) *Process {
	t.Helper()
	p := NewProcess(c)
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("testenv: %v", err)
		}
		p.report(t)
	})
	p.Start(t)
	return p
}

// report logs the end of what the program wrote, where the test has failed.
func (p *Process) report(t testing.TB) {
	if tail := p.output.Tail(8 << 10); t.Failed() && len(tail) > 0 {
		t.Logf("%s said:\n%s", p.command.Name, tail)
	}
}

// NewProcess returns a program that has not been started. Who starts it stops
// it.
func NewProcess(c Command) *Process {
	if c.StopSignal == 0 {
		c.StopSignal = syscall.SIGTERM
	}
	if c.DeathSignal == 0 {
		c.DeathSignal = syscall.SIGKILL
	}
	return &Process{command: c, output: new(Output)}
}

// Output returns what the program has written to its standard output and
// error since it was first started, the latest part of it if it was much.
func (p *Process) Output() *Output { return p.output }

// Pid returns the number of the running process, and 0 if there is none.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	select {
	case <-p.ended:
		return 0 // the kernel may have given the number to another
	default:
		return p.cmd.Process.Pid
	}
}

// Start runs the program and waits until it is ready. After Stop or Kill it
// runs again with the same arguments: the same port, the same data.
func (p *Process) Start(t testing.TB) {
	t.Helper()
	if err := p.start(); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}

func (p *Process) start() error {
	if err := p.spawn(); err != nil {
		return err
	}
	if p.command.Ready == nil {
		return nil
	}
	if err := p.awaitReady(); err != nil {
		return errors.Join(fmt.Errorf("%s: %w\n%s", p.command.Name, err, p.output.Tail(4<<10)), p.kill())
	}
	return nil
}

// Spawn runs the program without waiting until it is ready.
func (p *Process) Spawn(t testing.TB) {
	t.Helper()
	if err := p.spawn(); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}

func (p *Process) spawn() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return fmt.Errorf("%s runs already", p.command.Name)
	}
	cmd := exec.Command(p.command.Path, p.command.Args...)
	cmd.Dir, cmd.Env = p.command.Dir, p.command.Env
	cmd.Stdout, cmd.Stderr = p.output, p.output
	// A program whose children keep its output open must not hold up Wait.
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = processAttributes(p.command.Unprivileged, p.command.DeathSignal)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.command.Name, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is asked of ProcessState
	}()
	p.cmd, p.ended = cmd, ended
	return nil
}

func (p *Process) awaitReady() error {
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	deadline := time.Now().Add(startTimeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := p.command.Ready()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready after %v: %w", startTimeout, err)
		}
		select {
		case <-ended:
			return fmt.Errorf("ended before it was ready: %w", err)
		case <-tick.C:
		}
	}
}

// Stop asks the program to end in good order and waits until it has. A paused
// program is resumed first. Stopping what does not run does nothing.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	if err := p.stop(); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}

func (p *Process) stop() error {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	if pid := p.Pid(); pid != 0 {
		signalTree(pid, syscall.SIGCONT)
	}
	if err := cmd.Process.Signal(p.command.StopSignal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.command.Name, err)
	}
	select {
	case <-ended:
		p.forget(cmd)
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("%s still runs %v after %v", p.command.Name, stopTimeout, p.command.StopSignal), p.kill())
	}
}

// Signal sends a signal to the program's first process.
func (p *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		t.Fatalf("testenv: %s does not run", p.command.Name)
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("testenv: %v to %s: %v", s, p.command.Name, err)
	}
}

// Wait waits until the program has ended by itself, and returns its exit code,
// -1 if a signal ended it. It fails the test when that takes longer than d.
func (p *Process) Wait(t testing.TB, d time.Duration) int {
	t.Helper()
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	if cmd == nil {
		t.Fatalf("testenv: %s does not run", p.command.Name)
	}
	select {
	case <-ended:
		p.forget(cmd)
		return cmd.ProcessState.ExitCode()
	case <-time.After(d):
		t.Fatalf("testenv: %s still runs after %v", p.command.Name, d)
		return 0
	}
}

// Kill ends the program and all its children with SIGKILL, at once.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if err := p.kill(); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}

func (p *Process) kill() error {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	if pid := p.Pid(); pid != 0 {
		// Stopped first, so that none of them can start another meanwhile.
		for _, pid := range signalTree(pid, syscall.SIGSTOP) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
		}
	}
	select {
	case <-ended:
		p.forget(cmd)
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("%s survives SIGKILL", p.command.Name)
	}
}

// Pause stops the program and all its children where they stand (SIGSTOP):
// connections stay open, the kernel goes on accepting, and nothing answers.
func (p *Process) Pause(t testing.TB) {
	t.Helper()
	if pid := p.Pid(); pid == 0 || len(signalTree(pid, syscall.SIGSTOP)) == 0 {
		t.Fatalf("testenv: %s does not run", p.command.Name)
	}
}

// Resume lets a paused program go on.
func (p *Process) Resume(t testing.TB) {
	t.Helper()
	if pid := p.Pid(); pid == 0 || len(signalTree(pid, syscall.SIGCONT)) == 0 {
		t.Fatalf("testenv: %s does not run", p.command.Name)
	}
}

func (p *Process) forget(cmd *exec.Cmd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == cmd {
		p.cmd, p.ended = nil, nil
	}
}

// Output collects what a program writes, bounded: of more than outputLimit
// bytes the latest are kept. It may be read while it is written.
type Output struct {
	mu  sync.Mutex // guards buf
	buf []byte
}

const outputLimit = 4 << 20

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = append(o.buf, b...)
	if over := len(o.buf) - outputLimit; over > 0 {
		o.buf = append(o.buf[:0], o.buf[over:]...)
	}
	return len(b), nil
}

// Bytes returns a copy of what is kept.
func (o *Output) Bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.buf)
}

// Tail returns the last n bytes of it.
func (o *Output) Tail(n int) []byte {
	b := o.Bytes()
	return b[max(0, len(b)-n):]
}
