// Package testenv starts the real servers that tests need: PostgreSQL,
// MariaDB, Redis, nginx, PHP-FPM. Nothing here is a stand-in.
//
// # One server for one test
//
// Each function named after a server starts it, waits until it answers a
// question put to it in its own protocol, and stops it when the test ends:
//
//	func TestRestart(t *testing.T) {
//		r := testenv.Redis(t)
//		r.Pause(t)   // SIGSTOP: connections stay, nothing answers
//		r.Resume(t)
//		r.Kill(t)    // SIGKILL: what was not on disk is gone
//		r.Start(t)   // the same port, the same data
//	}
//
// # One server for a package
//
// Starting a database takes a second or two, so a package's tests share one
// where they don't break it. Each test gets an empty database of its own:
//
//	var servers testenv.Set
//
//	func TestMain(m *testing.M) { os.Exit(servers.Run(m)) }
//
//	func TestClaim(t *testing.T) {
//		url := servers.MariaDB(t).Database(t)
//		...
//	}
//
// # What is promised
//
// Servers listen on free ports of the loopback interface and on sockets in a
// folder of their own with a short path. They run as an unprivileged user when
// the tests run as root, because several of them refuse root. They end with
// the test; when the test binary is killed, the kernel ends them. A program
// that isn't installed fails the test with the name of Debian's package: a
// test that skips what it can't start proves nothing.
package testenv
