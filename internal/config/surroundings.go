package config

import "time"

// AfterDrain is what a process may need at its end beside drain_delay,
// drain_timeout and one store_timeout, in which it gives up its part of the
// background's work: for the last answers, evidence, telemetry and probes.
const AfterDrain = 10 * time.Second

// checkSurroundings compares the configuration with what it says of the place in
// which it runs.
func (l *loader) checkSurroundings(c *Config) {
	needs := c.DrainDelay + c.DrainTimeout + c.StoreTimeout + AfterDrain
	if killed := value(l.top.KilledAfter); killed > 0 && needs > killed && !l.faulty("drain_delay") && !l.faulty("drain_timeout") && !l.faulty("store_timeout") {
		l.fault("drain_timeout", "%s, with drain_delay (%s), store_timeout (%s) and %s for what follows, is more than the %s after which the process is killed (killed_after): attempts in hand would be neither finished nor marked; make it shorter, or have it killed later",
			readable(c.DrainTimeout), readable(c.DrainDelay), readable(c.StoreTimeout), readable(AfterDrain), readable(killed))
	}
	if value(l.top.SeveralHosts) && c.Store.Kind == "sqlite" {
		l.fault("store", "is sqlite, a file that each of several hosts (several_hosts) would have of its own, so that none would know what the others have run; use a server, or one replica")
	}
}
