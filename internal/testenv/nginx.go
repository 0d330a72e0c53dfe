package testenv

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// An NginxServer is a running nginx.
type NginxServer struct {
	*Process
	// Addr is the host:port that its sites listen on, URL the same with http.
	Addr, URL string
}

// Nginx starts nginx for one test. site returns the server blocks of its
// configuration; they listen on the given host:port and may keep files in dir.
func Nginx(t testing.TB, site func(listen, dir string) string) *NginxServer {
	t.Helper()
	return forTest(t, func(dir string) (*NginxServer, error) { return newNginx(dir, site) })
}

func newNginx(dir string, site func(listen, dir string) string) (*NginxServer, error) {
	path, err := program("nginx", "nginx")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	addr := "127.0.0.1:" + strconv.Itoa(port)
	conf := fmt.Sprintf(`
daemon off;
worker_processes 1;
pid %[1]s/nginx.pid;
error_log stderr;
events { worker_connections 1024; }
http {
	include /etc/nginx/mime.types;
	default_type application/octet-stream;
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
%[2]s
}
`, dir, site(addr, dir))
	file := dir + "/nginx.conf"
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		return nil, err
	}
	return &NginxServer{
		Process: NewProcess(Command{
			Name: "nginx", Path: path, Args: []string{"-e", "stderr", "-p", dir, "-c", file}, Dir: dir, Unprivileged: true,
			// Its workers would outlive it if it were killed outright.
			StopSignal: syscall.SIGQUIT, DeathSignal: syscall.SIGTERM,
			Ready: func() error { return askTCP(addr) },
		}),
		Addr: addr, URL: "http://" + addr,
	}, nil
}

// askTCP asks whether a connection is accepted, which is all that nginx can be
// asked before its sites' own servers run.
func askTCP(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}
