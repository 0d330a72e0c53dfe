package main

import (
	"fmt"
	"os"
	"strings"

	"oncegate/internal/config"
	"oncegate/internal/telemetry"
)

// watch loads the configuration anew when its files change, or a signal says so,
// until the service is stopped.
func (s *service) watch(o config.Options, force <-chan os.Signal) {
	o.Instead = "" // it runs by its file
	w := &config.Watcher{
		Options: o, Current: s.current.Load(), Force: force, Changed: s.reload,
		Degraded: func(err error) { s.log.Warn("changes of files are noticed late", "error", err) },
	}
	s.work.Go(func() { w.Run(s.life) })
}

// reload takes a new configuration over, as a whole or not at all. Requests that
// have begun keep to theirs.
func (s *service) reload(c *config.Config, err error) {
	if err == nil {
		err = s.takeOver(c)
	}
	s.tel.Reloaded(err == nil)
	if err != nil {
		s.log.Error("the configuration was not reloaded; the one before stays", "error", err)
		return
	}
	for _, w := range c.Warnings {
		s.log.Warn("configuration", "warning", w)
	}
	s.log.Info("the configuration was reloaded", "config", c)
}

func (s *service) takeOver(c *config.Config) error {
	if fixed := s.current.Load().NeedsRestart(c); len(fixed) > 0 {
		return fmt.Errorf("a change of %s takes a restart; nothing was changed", strings.Join(fixed, ", "))
	}
	level, err := telemetry.ParseLevel(c.LogLevel)
	if err != nil {
		return err
	}
	if err := s.handler.Reload(c); err != nil {
		return err
	}
	s.level.Set(level)
	s.current.Store(c)
	s.background.Close()
	s.startBackground(c)
	return nil
}
