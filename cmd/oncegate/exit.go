package main

import (
	"errors"

	"oncegate/internal/admin"
	"oncegate/internal/strictyaml"
	"oncegate/lock"
)

// The exit codes. They do not change.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitConfig      = 3
	exitUnavailable = 4
	exitUnfit       = 5
	exitNotFound    = 6
)

// exits says what each code means, for docs/cli.md and for people.
var exits = []struct {
	code    int
	meaning string
}{
	{exitDone, "done; `serve`: stopped as asked, and everything in hand was finished or marked"},
	{exitFailed, "what was asked for failed, or its answer is no: a delivery not answered 2xx, a process not ready, an address in use"},
	{exitUsage, "the command line is wrong"},
	{exitConfig, "the configuration is wrong; every fault was printed"},
	{exitUnavailable, "the store is out of reach, or the running oncegate that was to be asked"},
	{exitUnfit, "the store answers and would not keep what it promises"},
	{exitNotFound, "there is no such claim, route or provider"},
}

var (
	// errSaid is wrapped by errors whose text has been printed already.
	errSaid = errors.New("said already")
	// errNotFound says that there is no such thing.
	errNotFound = errors.New("not found")
)

// A usageError says that the command line is wrong.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// exitCode is the code that an error ends the process with.
func exitCode(err error) int {
	var usage *usageError
	var faults strictyaml.Faults
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &faults):
		return exitConfig
	case errors.Is(err, lock.ErrUnfit):
		return exitUnfit
	case errors.Is(err, lock.ErrUnavailable), errors.Is(err, admin.ErrAPI):
		return exitUnavailable
	case errors.Is(err, errNotFound):
		return exitNotFound
	}
	return exitFailed
}
