package testenv

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A PHPFPMServer is a running PHP-FPM with one pool.
type PHPFPMServer struct {
	*Process
	// Socket is the Unix socket on which it speaks FastCGI.
	Socket string
}

// A Pool says how a PHP-FPM pool is set up.
type Pool struct {
	// Children is the number of its workers, all started at once: so many
	// requests does the app work on at a time.
	Children int
	// Env is the environment that the app sees, and nothing else.
	Env map[string]string
	// Directives are further lines for the pool's section, such as
	// "request_terminate_timeout = 5s".
	Directives []string
}

// PHPFPM starts PHP-FPM for one test.
func PHPFPM(t testing.TB, pool Pool) *PHPFPMServer {
	t.Helper()
	return forTest(t, func(dir string) (*PHPFPMServer, error) { return newPHPFPM(dir, pool) })
}

func newPHPFPM(dir string, pool Pool) (*PHPFPMServer, error) {
	path, err := fpmProgram()
	if err != nil {
		return nil, err
	}
	f := &PHPFPMServer{Socket: dir + "/fpm.sock"}
	conf := []string{
		"[global]",
		"daemonize = no",
		"error_log = " + dir + "/fpm.log",
		"[www]",
		"listen = " + f.Socket,
		"listen.mode = 0666",
		"pm = static",
		fmt.Sprintf("pm.max_children = %d", pool.Children),
		"catch_workers_output = yes",
		"php_admin_flag[log_errors] = on",
		"php_admin_value[error_log] = /dev/stderr",
	}
	for name, value := range pool.Env {
		conf = append(conf, fmt.Sprintf("env[%s] = %q", name, value))
	}
	conf = append(conf, pool.Directives...)
	file := dir + "/fpm.conf"
	if err := os.WriteFile(file, []byte(strings.Join(conf, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	f.Process = NewProcess(Command{
		Name: "php-fpm", Path: path, Args: []string{"--nodaemonize", "--force-stderr", "--fpm-config", file}, Dir: dir, Unprivileged: true,
		// Its workers would outlive it if it were killed outright.
		DeathSignal: syscall.SIGTERM,
		Ready:       func() error { return askFastCGI(f.Socket) },
	})
	return f, nil
}

// fpmProgram finds PHP-FPM, whose name carries PHP's version on Debian.
func fpmProgram() (string, error) {
	versions, err := filepath.Glob("/usr/sbin/php-fpm*")
	if err != nil {
		return "", err
	}
	slices.Sort(versions)
	slices.Reverse(versions)
	return program("php-fpm", "php-fpm", versions...)
}

// askFastCGI sends FCGI_GET_VALUES, the protocol's question about the server
// itself (FastCGI specification, 4.1), and wants its answer.
func askFastCGI(socket string) error {
	const version, getValues, getValuesResult = 1, 9, 10
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{version, getValues, 0, 0, 0, 0, 0, 0}); err != nil {
		return err
	}
	var head [8]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	if head[0] != version || head[1] != getValuesResult {
		return fmt.Errorf("FCGI_GET_VALUES was answered with a record of type %d", head[1])
	}
	return nil
}
