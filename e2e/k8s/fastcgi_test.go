package k8s

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// The example without a web server, with what it says of paths, ports and users:
// a Laravel app in PHP-FPM, which oncegate speaks FastCGI to, and a PostgreSQL
// server. Containers start and end in the order of a pod.
func TestFastCGIPod(t *testing.T) {
	m := mustBuild(t, examples+"fastcgi/after")
	spec := &m.Workloads[0].Template.Spec
	shop := harness.NewShop(t, harness.ShopOptions{Work: time.Second, Children: 4})
	secret := map[string]string{"stripe": harness.Secret, "store": "postgres://oncegate:PASSWORD@127.0.0.1:5432/oncegate"}
	database := postgres(t)

	for _, end := range []struct {
		name, word string
		signal     unix.Signal // what the app's image says ends it
		status     int
	}{
		{"B67 what is in hand is finished by an app that ends in good order", "fresh", unix.SIGQUIT, http.StatusOK},
		{"B67 what an app throws away is unknown, and held", "unknown", unix.SIGTERM, http.StatusBadGateway},
	} {
		t.Run(end.name, func(t *testing.T) {
			p := newPod(t)
			p.relay(t, "127.0.0.1:5432", database)
			gate := p.start(t, m, spec, secret)
			fpm := p.phpFPM(t, shop, spec)

			before, first := shop.Payments(t), harness.NewEvent(int(end.signal)*100)
			p.once(t, first)
			if n := shop.Payments(t) - before; n != 1 {
				t.Errorf("PHP took one event for %d payments", n)
			}
			if page := p.get(t, "http://127.0.0.1:9179/"); page != "shop" {
				t.Errorf("a page through oncegate: %.80q", page)
			}

			// kubelet's order, once the app's hook is over.
			last := harness.NewEvent(int(end.signal)*100 + 1)
			var sending sync.WaitGroup
			sending.Go(func() {
				if status, word := p.deliver(t, last, harness.Secret); status != end.status || word != end.word {
					t.Errorf("what was in hand: %d %s", status, word)
				}
			})
			for shop.Payments(t) == before+1 {
				time.Sleep(10 * time.Millisecond)
			}
			fpm.Signal(t, end.signal)
			fpm.Wait(t, 30*time.Second)
			sending.Wait()
			gate.Signal(t, unix.SIGTERM)
			if code := gate.Wait(t, 30*time.Second); code != 0 {
				t.Errorf("oncegate ended with %d", code)
			}
			if n := shop.Payments(t) - before; n != 2 {
				t.Errorf("two events made %d payments", n)
			}
		})
	}
}

// once delivers an event several times at once, and then again.
func (p *pod) once(t *testing.T, event harness.Event) {
	t.Helper()
	var mu sync.Mutex
	var words []string
	deliver := func() {
		status, word := p.deliver(t, event, harness.Secret)
		if status != http.StatusOK {
			t.Errorf("%d %s", status, word)
		}
		mu.Lock()
		defer mu.Unlock()
		words = append(words, word)
	}
	var sending sync.WaitGroup
	for range 5 {
		sending.Go(deliver)
	}
	sending.Wait()
	deliver()
	slices.Sort(words)
	if words[0] != "fresh" || words[1] == "fresh" {
		t.Errorf("six deliveries of one event: %s", words)
	}
}

// phpFPM runs the app's container: its files where the configuration says they
// are, its user, and PHP from this machine.
func (p *pod) phpFPM(t *testing.T, shop *harness.Shop, spec *corev1.PodSpec) *testenv.Process {
	t.Helper()
	user := int(*spec.SecurityContext.RunAsUser)
	own(t, shop.Root, user)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(shop.FPM.Socket), "fpm.conf"))
	if err != nil {
		t.Fatal(err)
	}
	// As the pool that the shop's own site uses, but for where it listens; and
	// with time to finish what it has.
	conf := regexp.MustCompile(`(?m)^listen(\.mode)? = .*\n|^error_log = .*\n`).ReplaceAllString(string(text), "")
	conf = strings.Replace(conf, "[global]\n", "[global]\nerror_log = /pool/fpm.log\nprocess_control_timeout = 20s\n", 1)
	conf = strings.Replace(conf, "[www]\n", fmt.Sprintf("[www]\nlisten = 127.0.0.1:%d\n", spec.Containers[0].Ports[0].ContainerPort), 1)
	image, file := testenv.Dir(t), filepath.Join(testenv.Dir(t), "fpm.conf")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--net=" + p.network(), "unshare", "--mount", "./contain.sh", image, fmt.Sprintf("%d:%d", user, user)}
	for from, to := range map[string]string{
		"/bin": "/bin", "/dev": "/dev", "/etc": "/etc", "/lib": "/lib", "/lib64": "/lib64", "/proc": "/proc", "/sbin": "/sbin", "/usr": "/usr",
		"/tmp":             "/tmp", // also where the shop's environment says that its database is
		filepath.Dir(file): "/pool", shop.Root: "/app",
	} {
		makePlace(t, filepath.Join(image, to))
		args = append(args, from+"="+to)
	}
	args = append(args, "--", lookFPM(t), "--nodaemonize", "--force-stderr", "--fpm-config", "/pool/fpm.conf")
	own(t, filepath.Dir(file), user)
	for _, dir := range []string{image, filepath.Dir(file), filepath.Dir(shop.Root)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return testenv.Run(t, testenv.Command{
		Name: "php-fpm", Path: lookPath(t, "nsenter"), Args: args, Env: os.Environ(), DeathSignal: unix.SIGTERM,
		Ready: func() error { return p.inside(func() error { return dials("127.0.0.1:9000") }) },
	})
}

// own gives files to a user.
func own(t *testing.T, root string, user int) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, user, user)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lookFPM finds PHP-FPM, whose name carries PHP's version on Debian.
func lookFPM(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/sbin/php-fpm*")
	if err != nil || len(found) == 0 {
		t.Fatalf("php-fpm is not installed (%v)", err)
	}
	return found[len(found)-1]
}
