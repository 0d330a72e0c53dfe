package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oncegate/internal/config"
	"oncegate/lock"
	"oncegate/lock/memlock"
)

// find returns the finding about a thing, the gravest where there are several.
func find(t *testing.T, r Report, what string) Finding {
	t.Helper()
	found := Finding{}
	for _, f := range r {
		if f.What == what && (found.What == "" || f.Verdict == Fault || f.Verdict == Warning && found.Verdict != Fault) {
			found = f
		}
	}
	if found.What == "" {
		t.Fatalf("nothing is said of %s: %v", what, r)
	}
	return found
}

func want(t *testing.T, r Report, what string, v Verdict, text string) {
	t.Helper()
	if f := find(t, r, what); f.Verdict != v || !strings.Contains(f.Found, text) {
		t.Errorf("%s: %s, %q (%s); want %s, ...%s...", what, f.Verdict, f.Found, f.Where, v, text)
	}
}

// load makes a configuration of top-level lines and a route's lines.
func load(t *testing.T, top, route string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "oncegate.yaml")
	text := "version: 1\n" + top
	if !strings.Contains(top, "upstream:") {
		text += "upstream: http://127.0.0.1:1\n"
	}
	if !strings.Contains(top, "state_dir:") {
		text += "state_dir: " + dir + "/state\n"
	}
	text += "routes:\n  stripe:\n    path: /stripe/webhook\n    provider: stripe\n    secrets: whsec_test\n" + route
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A folder that this user can't write to, or make, is found before serve finds it.
func TestStateDirOfAnother(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/there", 0o700); err != nil {
		t.Fatal(err)
	}
	for at, text := range map[string]string{
		"/there":        "can't be written to by this user: permission denied",
		"/there/a/b":    "can't be made: " + dir + "/there: permission denied",
		"/not/there/at": "can't be made: " + dir + ": permission denied",
	} {
		var asked string
		denied := func(dir string) error { asked = dir; return fs.ErrPermission }
		o := Options{Config: load(t, "state_dir: "+dir+at+"\n", ""), writable: denied}
		want(t, Examine(t.Context(), o), "state_dir", Fault, text)
		if _, err := os.Stat(asked); err != nil {
			t.Errorf("asked about a folder that is not there: %v", err)
		}
	}
	if err := mayWrite(dir); err != nil {
		t.Errorf("its own folder: %v", err)
	}
	if err := mayWrite(dir + "/nowhere"); err == nil {
		t.Error("a folder that is not there")
	}
}

// A store is a memory store that says of itself what a test wants.
type store struct {
	*memlock.Store
	weak          []lock.Weakness
	checks        error
	refuses       bool
	ahead         time.Duration
	nothingIsKept bool
}

func newStore() *store { return &store{Store: memlock.New()} }

func (s *store) Check(context.Context) ([]lock.Weakness, error) { return s.weak, s.checks }

func (s *store) Now(context.Context) (time.Time, error) { return time.Now().Add(s.ahead), nil }

func (s *store) Apply(ctx context.Context, batch []lock.Change) ([]lock.Result, error) {
	if s.refuses || s.nothingIsKept {
		results := make([]lock.Result, len(batch))
		if s.refuses {
			results[0].Err = errors.New("permission denied")
		}
		return results, nil
	}
	return s.Store.Apply(ctx, batch)
}

func TestStore(t *testing.T) {
	for name, c := range map[string]struct {
		store   *store
		what    string
		verdict Verdict
		text    string
	}{
		"well":            {newStore(), "store", OK, "lets claims be written"},
		"clock":           {newStore(), "clock", OK, "apart"},
		"clock differs":   {&store{Store: memlock.New(), ahead: 10 * time.Second}, "clock", Warning, "10s apart"},
		"clock is wrong":  {&store{Store: memlock.New(), ahead: -time.Hour}, "clock", Fault, "refused as out of time"},
		"out of reach":    {&store{Store: memlock.New(), checks: fmt.Errorf("dial: %w", lock.ErrUnavailable)}, "store", Fault, "can't be asked"},
		"unfit":           {&store{Store: memlock.New(), checks: fmt.Errorf("no table: %w", lock.ErrUnfit)}, "store", Fault, "no table"},
		"weak":            {&store{Store: memlock.New(), weak: []lock.Weakness{{Name: "eviction", Detail: "it evicts"}}}, "store", Fault, "eviction: it evicts"},
		"weak, not known": {&store{Store: memlock.New(), weak: []lock.Weakness{{Name: "eviction", Unknown: true}}}, "store", Warning, "eviction"},
		"many lines":      {&store{Store: memlock.New(), checks: errors.New("failed to connect:\n\tone: refused\n\ttwo: refused")}, "store", Fault, "failed to connect: one: refused; two: refused"},
		"no right":        {&store{Store: memlock.New(), refuses: true}, "store", Fault, "can't be written to: permission denied"},
		"keeps nothing":   {&store{Store: memlock.New(), nothingIsKept: true}, "store", Fault, "not applied"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Examine(t.Context(), Options{Config: load(t, "", ""), Store: c.store})
			want(t, r, c.what, c.verdict, c.text)
		})
	}
	t.Run("accepted", func(t *testing.T) {
		s := &store{Store: memlock.New(), weak: []lock.Weakness{{Name: "eviction", Detail: "it evicts"}}}
		c := load(t, "store: {url: sqlite, accept_weak: [eviction]}\n", "")
		want(t, Examine(t.Context(), Options{Config: c, Store: s}), "store", Warning, "accepted")
	})
	t.Run("what it writes is gone soon", func(t *testing.T) {
		s := newStore()
		c := load(t, "", "")
		Examine(t.Context(), Options{Config: c, Store: s})
		s.Advance(2 * time.Second)
		records, err := s.List(t.Context(), lock.Filter{Namespace: c.Namespace}, lock.Cursor{}, 10)
		if err != nil || len(records) != 0 {
			t.Errorf("%d records are left, %v", len(records), err)
		}
	})
}

func TestFileSystem(t *testing.T) {
	for name, c := range map[string]struct {
		kind    string
		known   bool
		verdict Verdict
	}{
		"local": {"", true, OK}, "NFS": {"NFS", true, Fault}, "not known": {"", false, Warning},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			o := Options{Config: load(t, "", ""), fileSystem: func(path string) (string, bool) {
				asked = path
				return c.kind, c.known
			}}
			want(t, Examine(t.Context(), o), "file system", c.verdict, c.kind)
			if want := filepath.Dir(o.Config.StateDir); asked != want {
				t.Errorf("asked about %s; the nearest folder that is there is %s", asked, want)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	modes := func(t *testing.T, config, secret, state os.FileMode) Report {
		dir := t.TempDir()
		file, key := filepath.Join(dir, "oncegate.yaml"), filepath.Join(dir, "key")
		text := fmt.Sprintf("version: 1\nupstream: http://127.0.0.1:1\nstate_dir: %s/state\nroutes:\n  stripe: {path: /s, provider: stripe, secrets: \"file:%s\"}\n", dir, key)
		for _, err := range []error{
			os.WriteFile(file, []byte(text), 0o600), os.WriteFile(key, []byte("whsec_test\n"), 0o600), os.Mkdir(dir+"/state", 0o700),
			os.Chmod(file, config), os.Chmod(key, secret), os.Chmod(dir+"/state", state),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return Examine(t.Context(), Options{Config: loadFile(t, file)})
	}
	for name, c := range map[string]struct {
		config, secret, state os.FileMode
		what                  string
		verdict               Verdict
	}{
		"tight":                     {0o644, 0o600, 0o700, "files", OK},
		"the configuration by all":  {0o666, 0o600, 0o700, "files", Fault},
		"a secret by the group":     {0o600, 0o640, 0o700, "files", OK},
		"a secret read by all":      {0o600, 0o644, 0o700, "files", Warning},
		"a secret written by group": {0o600, 0o660, 0o700, "files", Fault},
		"state":                     {0o600, 0o600, 0o700, "state_dir", OK},
		"state read by all":         {0o600, 0o600, 0o755, "state_dir", Warning},
		"state written by all":      {0o600, 0o600, 0o777, "state_dir", Fault},
	} {
		t.Run(name, func(t *testing.T) { want(t, modes(t, c.config, c.secret, c.state), c.what, c.verdict, "") })
	}
}

func loadFile(t *testing.T, file string) *config.Config {
	t.Helper()
	c, err := config.Load(config.Options{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStateDirInARelease(t *testing.T) {
	dir := t.TempDir()
	release := dir + "/releases/20260102/storage"
	if err := os.MkdirAll(release, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"/releases/20260102", dir+"/current"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		top     string
		verdict Verdict
	}{
		"a release":        {"state_dir: " + release + "\n", Fault},
		"through a link":   {"state_dir: " + dir + "/current/storage\n", Fault},
		"beside the root":  {"state_dir: /srv/shop/storage\nupstream: fcgi://127.0.0.1:1?root=/srv/shop/public\n", Fault},
		"outside the app":  {"state_dir: " + dir + "/state\nupstream: fcgi://127.0.0.1:1?root=/srv/shop/public\n", OK},
		"a similar prefix": {"state_dir: /srv/shop-state\nupstream: fcgi://127.0.0.1:1?root=/srv/shop/public\n", OK},
	} {
		t.Run(name, func(t *testing.T) {
			anywhere := func(string) error { return nil }
			want(t, Examine(t.Context(), Options{Config: load(t, c.top, ""), writable: anywhere}), "state_dir", c.verdict, "")
		})
	}
}

func TestSenders(t *testing.T) {
	for name, c := range map[string]struct {
		top, route, what string
		verdict          Verdict
		text             string
	}{
		"retention":                   {"", "", "retention", OK, "35d; the sender retries for 3d"},
		"retention accepted":          {"store: {url: sqlite, accept_weak: [retention]}\n", "    retention: 1d\n", "retention", Warning, "accepted"},
		"never retried":               {"", "    retries_for: 0s\n", "retention", OK, "never retries"},
		"wait":                        {"", "", "wait", OK, "waits up to 8s"},
		"how long is not known":       {"", "    patience: 0s\n", "wait", Warning, "not known"},
		"a route that is only seen":   {"", "    mode: observe\n", "route", Warning, "observe"},
		"a route that is off":         {"", "    mode: off\n", "route", Warning, "off"},
		"a route that is not checked": {"", "  own: {path: /own, verify: none, key: {json: /id}}\n", "secrets", Warning, "not verified"},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, Examine(t.Context(), Options{Config: load(t, c.top, c.route)}), c.what, c.verdict, c.text)
		})
	}
}

func TestLimits(t *testing.T) {
	file := func(t *testing.T, text string) string {
		name := filepath.Join(t.TempDir(), "settings.conf")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const www = "[global]\nerror_log = x\n[www]\nlisten = /run/php.sock\n"
	for name, c := range map[string]struct {
		top, fpm, nginx string
		verdict         Verdict
		text            string
	}{
		"the same":          {"", www + "request_terminate_timeout = 120s", "", OK, "ends a request after 2m0s"},
		"in minutes":        {"", www + "request_terminate_timeout=2m ; two", "", OK, "2m0s"},
		"without a unit":    {"", www + "request_terminate_timeout = 60", "", OK, "1m0s"},
		"none":              {"", www, "", Warning, "no request_terminate_timeout"},
		"commented out":     {"", www + ";request_terminate_timeout = 30", "", Warning, "no request_terminate_timeout"},
		"longer":            {"", www + "request_terminate_timeout = 5m", "", Fault, "longer than app_limit"},
		"app_limit is 0":    {"app_limit: 0s\n", www + "request_terminate_timeout = 60", "", Fault, "app_limit is 0"},
		"another pool's":    {"upstream: fcgi+unix:/run/other.sock?root=/x\n", www, "", Skipped, "no PHP-FPM pool"},
		"its own of two":    {"upstream: fcgi+unix:/run/b.sock?root=/x\n", www + "request_terminate_timeout=1d\n[b]\nlisten=/run/$pool.sock\nrequest_terminate_timeout = 60", "", OK, "1m0s"},
		"one of two":        {"", www + "request_terminate_timeout=60\n[b]\nlisten=9000\nrequest_terminate_timeout = 1h", "", Warning, "longer than app_limit"},
		"no file":           {"", "", "", Skipped, "no PHP-FPM pool"},
		"nginx waits less":  {"", www + "request_terminate_timeout=60", "location / {\n  fastcgi_read_timeout 60;\n}", Warning, "fastcgi_read_timeout is 1m0s"},
		"nginx waits":       {"", www + "request_terminate_timeout=60", "proxy_read_timeout 3m;", OK, ""},
		"nginx, commented":  {"", www + "request_terminate_timeout=60", "# proxy_read_timeout 1s;", OK, ""},
		"nginx, on a line":  {"", www + "request_terminate_timeout=60", "location / { proxy_read_timeout 500ms; }", Warning, "500ms"},
		"not a pool at all": {"", "\x00\xff[", "", Skipped, "no PHP-FPM pool"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Config: load(t, c.top, "")}
			if c.fpm != "" {
				o.FPM = []string{file(t, c.fpm)}
			}
			if c.nginx != "" {
				o.Nginx = []string{file(t, c.nginx)}
			}
			want(t, Examine(t.Context(), o), "app_limit", c.verdict, c.text)
		})
	}
}

func TestUpstream(t *testing.T) {
	app := httptest.NewServer(http.NotFoundHandler())
	defer app.Close()
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != unusualMethod || r.URL.Path != "/stripe/webhook" || r.Host != "shop.example" {
			t.Errorf("%s %s %s", r.Method, r.URL, r.Host)
		}
		w.Header().Set(resultHeader, "malformed")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}))
	defer gate.Close()
	root := t.TempDir()
	port := strings.TrimPrefix(app.URL, "http://")
	for name, c := range map[string]struct {
		top     string
		verdict Verdict
		text    string
	}{
		"there":        {"upstream: " + app.URL + "\n", OK, "accepts connections"},
		"not there":    {"upstream: http://127.0.0.1:1\n", Fault, "connection refused"},
		"no socket":    {"upstream: http+unix:/nowhere.sock\n", Fault, "no such file"},
		"no front":     {"upstream: fcgi://" + port + "?root=" + root + "\n", Warning, "index.php can't be looked at"},
		"leads back":   {"public_url: https://shop.example\nupstream: " + gate.URL + "\n", Fault, "leads back to oncegate"},
		"no TLS there": {"upstream: https://" + port + "\n", Fault, "can't be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, Examine(t.Context(), Options{Config: load(t, c.top, ""), Timeout: time.Second}), "upstream", c.verdict, c.text)
		})
	}
}

// answering is a web server in front of oncegate: what it sends to oncegate is
// refused as an unsigned delivery must be.
func answering(toGate func(*http.Request) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if toGate(r) {
			w.Header().Set(resultHeader, "unverified")
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
}

func TestPublic(t *testing.T) {
	probe := func(t *testing.T, route string, h http.Handler) Report {
		s := httptest.NewServer(h)
		defer s.Close()
		return Examine(t.Context(), Options{Config: load(t, "", route), Public: s.URL + "/", Timeout: time.Second})
	}
	t.Run("all forms come to oncegate", func(t *testing.T) {
		targets := map[string]bool{}
		r := probe(t, "", answering(func(r *http.Request) bool {
			if r.Method != http.MethodPost || r.Header.Get("Stripe-Signature") != "" {
				t.Errorf("%s, signed with %q", r.Method, r.Header.Get("Stripe-Signature"))
			}
			targets[r.RequestURI] = true
			return true
		}))
		want(t, r, "public", OK, fmt.Sprintf("%d forms", len(targets)))
		for _, target := range []string{"/stripe/webhook", "/stripe/webhook/", "//stripe/webhook", "/stripe%2Fwebhook", "/index.php/stripe/webhook", "/./stripe/webhook", "/%73tripe/webhook"} {
			if !targets[target] {
				t.Errorf("%s was not tried: %v", target, targets)
			}
		}
	})
	t.Run("one goes past it", func(t *testing.T) {
		r := probe(t, "", answering(func(r *http.Request) bool { return !strings.HasPrefix(r.RequestURI, "/index.php") }))
		want(t, r, "public", Fault, "answered 200, and not by oncegate")
	})
	t.Run("an app that refuses by itself is no oncegate", func(t *testing.T) {
		want(t, probe(t, "", http.NotFoundHandler()), "public", Fault, "answered 404")
	})
	t.Run("a redirect is not followed", func(t *testing.T) {
		r := probe(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}))
		want(t, r, "public", Fault, "answered 302")
	})
	t.Run("an observed route is not probed", func(t *testing.T) {
		r := probe(t, "    mode: observe\n", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("probed") }))
		want(t, r, "public", Skipped, "not probed")
	})
	t.Run("a route that verifies nothing is not probed", func(t *testing.T) {
		r := probe(t, "  own: {path: /own, verify: none, key: {json: /id}}\n", answering(func(r *http.Request) bool {
			if strings.Contains(r.URL.Path, "own") {
				t.Error("probed")
			}
			return true
		}))
		skipped := 0
		for _, f := range r {
			if f.What == "public" && f.Where == "own" && f.Verdict == Skipped {
				skipped++
			}
		}
		if skipped != 1 {
			t.Errorf("%v", r)
		}
	})
	t.Run("nothing listens", func(t *testing.T) {
		r := Examine(t.Context(), Options{Config: load(t, "", ""), Public: "http://127.0.0.1:1"})
		want(t, r, "public", Fault, "connection refused")
	})
	t.Run("nothing answers", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		r := Examine(t.Context(), Options{Config: load(t, "", ""), Public: "http://" + l.Addr().String(), Timeout: 5 * time.Millisecond})
		want(t, r, "public", Fault, "no answer in time")
	})
	t.Run("not asked for", func(t *testing.T) {
		want(t, Examine(t.Context(), Options{Config: load(t, "", "")}), "public", Skipped, "not tried")
	})
}

func TestParsePublic(t *testing.T) {
	for text, ok := range map[string]bool{
		"https://shop.example": true, "http://127.0.0.1:80/": true, "shop.example": false, "ftp://shop.example": false, "https://": false,
		"https://user:secret@shop.example": false, "https://shop.example/path": false, "https://shop.example?x": false, "https://shop.example#x": false, "%zz": false,
	} {
		err := ParsePublic(text)
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Error("the error quotes what was given")
		}
	}
}

// Whatever files of settings hold, they are read to an end.
func FuzzPools(f *testing.F) {
	f.Add([]byte("[www]\nlisten = x\nrequest_terminate_timeout = 10m\n"))
	f.Add([]byte("[\n=\n[]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, p := range poolsOf(data) {
			if p.limit < 0 {
				t.Errorf("a limit of %v", p.limit)
			}
		}
	})
}
