package harness

import (
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"oncegate/internal/testenv"
)

// Secret is the signing secret that the shop and its senders share.
const Secret = "whsec_end_to_end_secret_of_the_shop"

// WebhookPath is where the shop takes Stripe's events.
const WebhookPath = "/stripe/webhook"

// ShopOptions says how a shop is set up. The zero value is a shop on SQLite
// that works 200 ms on an event and on eight requests at a time.
type ShopOptions struct {
	// Work is how long the webhook's handler takes. Zero means 200 ms.
	Work time.Duration
	// Database is where it keeps its payments. Zero means SQLite.
	Database Database
	// Overlay is a folder whose files are put over the app's; empty means none.
	Overlay string
	// Children is the number of PHP-FPM's workers. Zero means 8.
	Children int
}

// A Shop is the app that oncegate protects: Laravel 8 with a webhook handler
// that takes each delivery for a new payment.
type Shop struct {
	*testenv.NginxServer
	FPM *testenv.PHPFPMServer
	// Root is the app's folder.
	Root string
	// DatabaseURL is that of its payments, for a witness to ask.
	DatabaseURL string
	db          *sql.DB
	env         map[string]string
}

// NewShop starts a shop with an empty database. It ends with the test.
func NewShop(t testing.TB, o ShopOptions) *Shop {
	t.Helper()
	if o.Work == 0 {
		o.Work = 200 * time.Millisecond
	}
	if o.Children == 0 {
		o.Children = 8
	}
	s := &Shop{Root: testenv.Dir(t) + "/shop"}
	install(t, s.Root, o.Overlay)
	if o.Database.driver == "" {
		o.Database = onSQLite(s.Root + "/storage/shop.sqlite")
	}
	env := map[string]string{
		"APP_KEY":               appKey(),
		"STRIPE_WEBHOOK_SECRET": Secret,
		"SHOP_WORK_MS":          strconv.FormatInt(o.Work.Milliseconds(), 10),
	}
	maps.Copy(env, o.Database.env)
	s.env = env
	s.Artisan(t, "migrate", "--force")
	s.DatabaseURL = o.Database.url
	s.db = o.Database.open(t)
	s.FPM = testenv.PHPFPM(t, testenv.Pool{Children: o.Children, Env: env})
	s.NginxServer = testenv.Nginx(t, func(listen, _ string) string { return s.Site(listen) })
	return s
}

// Site returns nginx's configuration of the shop, with further lines in its
// server block. It is what Laravel Forge writes for a site.
func (s *Shop) Site(listen string, more ...string) string {
	site := fmt.Sprintf(`
	server {
		listen %s;
		server_name _;
		server_tokens off;
		root %s/public;
		index index.html index.htm index.php;
		charset utf-8;
`, listen, s.Root)
	for _, line := range more {
		site += "\t\t" + line + "\n"
	}
	return site + fmt.Sprintf(`
		location / {
			try_files $uri $uri/ /index.php?$query_string;
		}
		location = /favicon.ico { access_log off; log_not_found off; }
		location = /robots.txt  { access_log off; log_not_found off; }
		error_page 404 /index.php;
		location ~ \.php$ {
			fastcgi_split_path_info ^(.+\.php)(/.+)$;
			fastcgi_pass unix:%s;
			fastcgi_index index.php;
			include /etc/nginx/fastcgi.conf;
		}
		location ~ /\.(?!well-known).* {
			deny all;
		}
	}
`, s.FPM.Socket)
}

// FastCGI returns the upstream that leads to PHP-FPM without nginx.
func (s *Shop) FastCGI() string {
	return "fcgi+unix:" + s.FPM.Socket + "?root=" + s.Root + "/public"
}

// install copies the app to a folder that PHP's user can read and write, and an
// overlay over it.
func install(t testing.TB, root, overlay string) {
	t.Helper()
	if err := os.CopyFS(root, os.DirFS(appDir(t))); err != nil {
		t.Fatal(err)
	}
	if overlay != "" {
		put(t, root, overlay)
	}
	for _, dir := range []string{"bootstrap/cache", "storage/logs", "storage/framework/cache", "storage/framework/sessions", "storage/framework/views"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(root+"/storage/shop.sqlite", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return testenv.Own(path)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// put copies a folder's files over those in root.
func put(t testing.TB, root, overlay string) {
	t.Helper()
	files := os.DirFS(overlay)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(root, path), 0o755))
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(root, path), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// appDir finds the app's folder beside this package, from the folder that the
// test runs in.
func appDir(t testing.TB) string {
	t.Helper()
	for _, dir := range []string{"app", "../app"} {
		if _, err := os.Stat(filepath.Join(dir, "artisan")); err == nil {
			return dir
		}
	}
	t.Fatal("the Laravel app's folder e2e/app is not here")
	return ""
}

// Artisan runs one of the app's own commands.
func (s *Shop) Artisan(t testing.TB, args ...string) {
	t.Helper()
	php, err := exec.LookPath("php")
	if err != nil {
		t.Fatal("php is not installed: apt-get install php-cli php-laravel-framework php-sqlite3 (or make test as root, which does it)")
	}
	cmd := testenv.UnprivilegedCommand(s.Root, php, append([]string{"artisan"}, args...)...)
	for name, value := range s.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("artisan %v: %v\n%s", args, err, out)
	}
}

// appKey makes the key with which Laravel encrypts its cookies and signs its
// URLs.
func appKey() string {
	key := make([]byte, 32)
	rand.Read(key)
	return "base64:" + base64.StdEncoding.EncodeToString(key)
}
