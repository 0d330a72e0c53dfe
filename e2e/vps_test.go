package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"oncegate/e2e/harness"
	"oncegate/e2e/vps"
)

// TestVPS builds what is released, and tries on a server of its own, with systemd
// as its first process, what a shop's owner does on his: the package's whole life,
// and the guide.
func TestVPS(t *testing.T) {
	first, next := dist(t, "..", "1.0.0", "amd64 arm64"), dist(t, "..", "1.1.0", runtime.GOARCH)
	t.Run("dist", func(t *testing.T) { checkDist(t, first) })
	t.Run("package", func(t *testing.T) { packageLife(t, first, next) })
	t.Run("guide", func(t *testing.T) { followGuide(t, next) })
}

// A vpsShop is a machine on which the real shop runs as Forge sets one up, and a
// copy of it for staging.
type vpsShop struct {
	*vps.Machine
	sender *harness.Sender
	sent   int // events so far
}

const shopSite = "/etc/nginx/sites-available/shop"

// newVPSShop sets the machine up: users, folders, PHP-FPM and nginx by Debian's
// own units, a certificate that the machine trusts.
func newVPSShop(t *testing.T) *vpsShop {
	m := vps.Boot(t)
	s := &vpsShop{Machine: m, sender: harness.NewSenderOver(m.Client())}
	certificate, key := selfSigned(t, "shop.example")
	m.Write(t, "/etc/ssl/shop.pem", certificate)
	m.Write(t, "/etc/ssl/shop.key", key)
	m.Run(t, `
cat /etc/ssl/shop.pem >> /etc/ssl/certs/ca-certificates.crt
echo '127.0.0.1 shop.example staging.shop.example' >> /etc/hosts
useradd --create-home forge
chmod 750 /home/forge
usermod --append --groups forge www-data
mkdir /home/forge/shop /home/forge/staging
rm /etc/nginx/sites-enabled/*
`)
	for name, ports := range map[string]string{"shop": "listen 80;\n    listen 443 ssl;\n    ssl_certificate /etc/ssl/shop.pem;\n    ssl_certificate_key /etc/ssl/shop.key;", "staging": "listen 80;"} {
		root := "/home/forge/" + name
		harness.CopyApp(t, m.Path(root))
		m.Write(t, root+"/.env", dotenv(root))
		host := "shop.example"
		if name == "staging" {
			host = "staging.shop.example"
		}
		m.Write(t, "/etc/nginx/sites-available/"+name, forgeSite(host, ports, root))
		m.Run(t, `
cd /home/forge/`+name+`
touch storage/shop.sqlite
chown -R forge:forge .
chmod 640 .env
chown -R www-data storage bootstrap/cache
ln -s /etc/nginx/sites-available/`+name+` /etc/nginx/sites-enabled/
runuser -u www-data -- php artisan migrate --force
`)
	}
	m.Run(t, `
for unit in /lib/systemd/system/php*-fpm.service; do systemctl start "$(basename "$unit")"; done
systemctl start nginx
`)
	return s
}

// dotenv is a shop's .env as people write them.
func dotenv(root string) string {
	return `APP_NAME="The Shop"
APP_KEY=` + harness.AppKey() + `
export DB_CONNECTION=sqlite
DB_DATABASE=` + root + `/storage/shop.sqlite
DB_PASSWORD="p@ss/w#rd"   # not used by SQLite
REDIS_PASSWORD=null
SHOP_WORK_MS=300
STRIPE_SECRET_PART=` + strings.TrimPrefix(harness.Secret, "whsec_") + `
STRIPE_WEBHOOK_SECRET="whsec_${STRIPE_SECRET_PART}"
`
}

// forgeSite is what Forge writes for a site.
func forgeSite(host, ports, root string) string {
	return `server {
    ` + ports + `
    server_name ` + host + `;
    server_tokens off;
    root ` + root + `/public;
    index index.html index.htm index.php;
    charset utf-8;

    location / {
        try_files $uri $uri/ /index.php?$query_string;
    }
    location = /favicon.ico { access_log off; log_not_found off; }
    location = /robots.txt  { access_log off; log_not_found off; }
    error_page 404 /index.php;
    location ~ \.php$ {
        fastcgi_split_path_info ^(.+\.php)(/.+)$;
        fastcgi_pass unix:/run/php/php-fpm.sock;
        fastcgi_index index.php;
        include fastcgi.conf;
    }
    location ~ /\.(?!well-known).* {
        deny all;
    }
}
`
}

// payments counts the runs of a shop's handler for an event, or for all.
func (s *vpsShop) payments(t *testing.T, shop, event string) int {
	t.Helper()
	out := s.Run(t, fmt.Sprintf(`php -r '$shop = new PDO("sqlite:/home/forge/%s/storage/shop.sqlite"); $shop->exec("PRAGMA busy_timeout = 60000");
$rows = $shop->prepare("SELECT COUNT(*) FROM payments WHERE ? IN (\"\", event)"); $rows->execute([$argv[1]]); echo $rows->fetchColumn();' -- '%s'`, shop, event))
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// event makes an event that was not sent yet.
func (s *vpsShop) event() harness.Event {
	s.sent++
	return harness.NewEvent(500_000 + s.sent)
}

// deliver sends a delivery as Stripe does: to the public address, by HTTPS.
func (s *vpsShop) deliver(t *testing.T, e harness.Event) harness.Answer {
	t.Helper()
	return s.sender.Send(t.Context(), "https://shop.example"+harness.WebhookPath, e.Delivery())
}

// twice delivers a new event twice, and holds the answers and the runs to what is
// wanted. The results are oncegate's words, empty where it has no part in it.
func (s *vpsShop) twice(t *testing.T, first, second string, runs int) {
	t.Helper()
	e := s.event()
	one, two := s.deliver(t, e), s.deliver(t, e)
	if !one.OK() || !two.OK() || one.Result() != first || two.Result() != second {
		t.Errorf("an event delivered twice: %v, then %v; want 200 %q, then 200 %q", one, two, first, second)
	}
	if got := s.payments(t, "shop", e.ID); got != runs {
		t.Errorf("an event delivered twice made %d payments, want %d", got, runs)
	}
	if runs == 1 && !bytes.Equal(one.Body, two.Body) {
		t.Errorf("the duplicate got %q, and the first %q", two.Body, one.Body)
	}
}

// selfSigned makes a certificate for a host, and its key, in PEM.
func selfSigned(t *testing.T, host string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	coded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: coded}))
}

// eventually waits for what happens a moment after a command has returned.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("in 30s not seen: %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
