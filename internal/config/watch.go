package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A Watcher loads the configuration anew when one of the files that it was made
// from changes: the YAML file, the .env, the files of secrets. It sees writes,
// renames over a file, and swaps of any symbolic link on the way to one (a
// ConfigMap's ..data, a deploy's current).
//
// Notices of the file system are hints only. What decides is whether the files'
// contents are others than those that were read last; that is also looked at
// every Poll, since some file systems give no notice.
type Watcher struct {
	// Options are those of the first Load.
	Options Options
	// Current is what the first Load returned.
	Current *Config
	// Changed is called with what each further Load returned: a complete new
	// Config, or the Faults, in which case the one before is to stay. It is not
	// called twice at once.
	Changed func(*Config, error)
	// Degraded is called when a folder can't be watched, so that changes in it
	// are seen by polling only. Nil: not told.
	Degraded func(error)
	// Force loads anew whether or not anything changed; for SIGHUP. Nil: never.
	Force <-chan os.Signal
	// Quiet is how long the files must have been left alone before they are
	// read, since a deploy writes many; 0 is 250ms. Under constant change they
	// are read every 8 times that.
	Quiet time.Duration
	// Poll is how often contents are compared without notice; 0 is 30s.
	Poll time.Duration
}

// Run watches until ctx is over, and returns when everything it began has
// ended.
func (w *Watcher) Run(ctx context.Context) {
	run := watchRun{Watcher: w, Quiet: w.Quiet, Poll: w.Poll, sources: w.Current.sources, watched: map[string]bool{}}
	if run.Quiet <= 0 {
		run.Quiet = 250 * time.Millisecond
	}
	if run.Poll <= 0 {
		run.Poll = 30 * time.Second
	}
	notices, err := fsnotify.NewWatcher()
	if err != nil {
		run.degraded(fmt.Errorf("files are polled every %s: %w", run.Poll, err))
		run.loop(ctx, nil, nil)
		return
	}
	defer notices.Close()
	run.notices = notices
	run.watch()
	run.loop(ctx, notices.Events, notices.Errors)
}

// watchRun is the state of one Run; its loop alone touches it.
type watchRun struct {
	*Watcher
	Quiet, Poll time.Duration
	sources     []source // as they were last read, also where that gave faults
	notices     *fsnotify.Watcher
	points      map[point]bool  // the names whose changes matter
	watched     map[string]bool // the folders that are watched, or whose failure was told
}

func (r *watchRun) loop(ctx context.Context, events <-chan fsnotify.Event, failures <-chan error) {
	poll := time.NewTicker(r.Poll)
	defer poll.Stop()
	quiet := time.NewTimer(0) // files may have changed since the first Load
	defer quiet.Stop()
	var since time.Time // the first change that was not looked at yet
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.Force:
			r.reload()
		case <-poll.C:
			r.check()
		case <-quiet.C:
			since = time.Time{}
			r.check()
		case event, ok := <-events:
			switch {
			case !ok:
				events = nil
			case r.points[pointOf(event.Name)]:
				if since.IsZero() {
					since = time.Now()
				}
				quiet.Reset(min(r.Quiet, max(0, 8*r.Quiet-time.Since(since))))
			}
		case err, ok := <-failures:
			switch {
			case !ok:
				failures = nil
			case errors.Is(err, fsnotify.ErrEventOverflow):
				quiet.Reset(r.Quiet)
			default:
				r.degraded(fmt.Errorf("watching files: %w", err))
			}
		}
	}
}

// check loads anew if a file is another than it was.
func (r *watchRun) check() {
	if anyChanged(r.sources) {
		r.reload()
		return
	}
	r.watch() // the same content may stand behind another link now
}

func (r *watchRun) reload() {
	config, sources, faults := load(r.Options)
	r.sources = sources
	r.watch()
	r.Changed(config, faults.Err())
}

func (r *watchRun) degraded(err error) {
	if r.Degraded != nil {
		r.Degraded(err)
	}
}

// watch has the file system watch the folders in which something may change
// what the files' names lead to, and no others.
func (r *watchRun) watch() {
	r.points = map[point]bool{}
	folders := map[string]bool{}
	for _, s := range r.sources {
		for _, p := range pointsOf(s.name) {
			r.points[p] = true
			folders[p.folder] = true
		}
	}
	if r.notices == nil {
		return
	}
	for folder := range folders {
		// Adding again is right: another folder may have this name now.
		if err := r.notices.Add(folder); err != nil && !r.watched[folder] {
			r.degraded(fmt.Errorf("folder %s is polled every %s: %w", folder, r.Poll, err))
		}
		r.watched[folder] = true
	}
	for folder := range r.watched {
		if folders[folder] {
			continue
		}
		delete(r.watched, folder)
		// The kernel forgets a folder that is gone, and then calls this EINVAL.
		err := r.notices.Remove(folder)
		if err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) && !errors.Is(err, syscall.EINVAL) {
			r.degraded(fmt.Errorf("folder %s can't be left alone: %w", folder, err))
		}
	}
}
