package bench

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"oncegate/internal/testenv"
)

// role, where it is set in the environment, makes of the test binary one of the
// servers that are compared, listening at addr.
const (
	role     = "ONCEGATE_BENCH_ROLE"
	addr     = "ONCEGATE_BENCH_ADDR"
	upstream = "ONCEGATE_BENCH_UPSTREAM"
)

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "app":
		serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{"application/json"}
			_, _ = w.Write([]byte(`{"received":true}`)) // the client may be gone
		}))
	case "bare":
		serve(bare(os.Getenv(upstream)))
	default:
		os.Exit(servers.Run(m))
	}
}

func serve(h http.Handler) {
	fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Getenv(addr), h))
	os.Exit(1)
}

// bare is httputil.ReverseProxy as one would tune it.
func bare(app string) http.Handler {
	to := &url.URL{Scheme: "http", Host: app}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 256, 256
	transport.DisableCompression = true
	return &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		Transport:  transport,
		BufferPool: &buffers{sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}},
	}
}

type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte  { return *b.pool.Get().(*[]byte) }
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }

// answers reports whether somebody listens.
func answers(addr string) func() error {
	return func() error {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// start runs the test binary in a role and returns its address.
func start(t *testing.T, as string, env ...string) string {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	testenv.Run(t, testenv.Command{
		Name: as, Path: self, Ready: answers(at),
		Env: append(os.Environ(), append(env, role+"="+as, addr+"="+at)...),
	})
	return at
}

// oncegate starts the built command on a store and returns its address.
func oncegate(t *testing.T, binary, app, store string) string {
	return serveGate(t, binary, app, store, "").addr
}

// A gate is a running oncegate.
type gate struct {
	*testenv.Process
	addr, health string
	config, dir  string // its file, and its state folder
}

// serveGate starts the built command on a store, with more top-level lines.
func serveGate(t *testing.T, binary, app, store, more string) *gate {
	dir := t.TempDir()
	at := fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	health := fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	admin := fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	config := filepath.Join(dir, "oncegate.yaml")
	text := fmt.Sprintf(`version: 1
listen: %s
health: %s
admin: %s
state_dir: %s
upstream: http://%s
namespace: bench
log_level: warn
store: %s
%s
routes:
  stripe: {path: /stripe/webhook, provider: stripe, secrets: %s}
`, at, health, admin, dir, app, store, more, secret)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	process := testenv.Run(t, testenv.Command{
		Name: "oncegate", Path: binary, Args: []string{"serve", "--config", config}, Env: os.Environ(),
		Ready: func() error {
			resp, err := http.Get("http://" + health + "/readyz")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != 200 {
				return fmt.Errorf("readyz: %s", resp.Status)
			}
			return nil
		},
	})
	return &gate{Process: process, addr: at, health: health, config: config, dir: dir}
}

// build builds the command.
func build(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "oncegate")
	out, err := exec.Command("go", "build", "-o", path, "oncegate/cmd/oncegate").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// nginx starts nginx before the app and returns its address.
func nginx(t *testing.T, app string) string {
	return testenv.Nginx(t, func(listen, _ string) string {
		return fmt.Sprintf(`
upstream app { server %s; keepalive 64; keepalive_requests 1000000000; }
server {
	listen %s;
	keepalive_requests 1000000000;
	location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; }
}`, app, listen)
	}).Addr
}
