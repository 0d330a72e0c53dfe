package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"oncegate/internal/admin"
	"oncegate/internal/config"
	"oncegate/internal/shop"
	"oncegate/internal/telemetry"
)

// What the demo sends, and how long the shop works on one webhook.
const (
	demoEvents   = 100
	demoCopies   = 5
	demoParallel = 64
	demoWork     = 50 * time.Millisecond
	demoSecret   = "whsec_demo"
	demoPath     = "/stripe/webhook"
)

// A stage is what the demo runs: two shops, and oncegate before one of them.
type stage struct {
	bare, behind *shopServer
	service      *service
	front        *url.URL // oncegate's webhook
	health       string
	admin, token string // the operators' address, and the file with their token
	config, log  string // files
	logFile      *os.File
}

// newStage starts everything in dir. With an error nothing is left running.
func newStage(ctx context.Context, dir string) (s *stage, err error) {
	s = &stage{config: filepath.Join(dir, "oncegate.yaml"), log: filepath.Join(dir, "oncegate.log")}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.bare, err = openShop(); err != nil {
		return s, err
	}
	if s.behind, err = openShop(); err != nil {
		return s, err
	}
	if s.logFile, err = os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return s, err
	}
	return s, s.startService(ctx, dir)
}

// startService starts oncegate as serve does, from a file. The addresses are
// taken first, so that the file can name them.
func (s *stage) startService(ctx context.Context, dir string) error {
	service := &service{version: thisBuild().Version}
	service.log = telemetry.NewLogger(s.logFile, &service.level)
	if err := service.takeFreeAddresses(); err != nil {
		return err
	}
	text := fmt.Sprintf(`version: 1
listen: %s
health: %s
admin: %s
state_dir: %q
upstream: http://%s
drain_timeout: 5s
record: unsettled
routes:
  stripe:
    path: %s
    provider: stripe
    secrets: %s
    tags: {order: {json: /id}}
`, service.publicAddr(), service.healthAddr(), service.adminAddr(), dir, s.behind.url.Host, demoPath, demoSecret)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		return errors.Join(err, service.giveAddressesBack())
	}
	c, err := config.Load(config.Options{Path: s.config})
	if err != nil {
		return errors.Join(err, service.giveAddressesBack())
	}
	if err := service.start(ctx, c); err != nil {
		return err
	}
	s.service = service
	s.front = &url.URL{Scheme: "http", Host: service.publicAddr(), Path: demoPath}
	s.health, s.admin, s.token = service.healthAddr(), service.adminAddr(), filepath.Join(dir, admin.TokenFile)
	return nil
}

// takeFreeAddresses listens on free ports of this machine. With an error it listens
// on none.
func (s *service) takeFreeAddresses() (err error) {
	for _, l := range []struct {
		field string
		into  *net.Listener
	}{{"listen", &s.publicListener}, {"health", &s.healthListener}, {"admin", &s.adminListener}} {
		if *l.into, err = listen(l.field, "127.0.0.1:0"); err != nil {
			return errors.Join(err, s.giveAddressesBack())
		}
	}
	return nil
}

// giveAddressesBack closes those that were taken.
func (s *service) giveAddressesBack() (err error) {
	for _, l := range []net.Listener{s.publicListener, s.healthListener, s.adminListener} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// close stops what was started, oncegate before the shop behind it.
func (s *stage) close() (err error) {
	if s.service != nil {
		err = s.service.stop()
	}
	for _, shop := range []*shopServer{s.bare, s.behind} {
		if shop != nil {
			err = errors.Join(err, shop.close())
		}
	}
	if s.logFile != nil {
		err = errors.Join(err, s.logFile.Close())
	}
	return err
}

// A shopServer is a shop on a port of its own.
type shopServer struct {
	*shop.Shop
	url    *url.URL // of its webhook
	server *http.Server
	wg     sync.WaitGroup
	err    error // of Serve; to be read after wg
}

func openShop() (*shopServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &shopServer{Shop: shop.New(demoSecret, demoWork)}
	s.url = &url.URL{Scheme: "http", Host: l.Addr().String(), Path: demoPath}
	s.server = &http.Server{Handler: s.Shop, ReadHeaderTimeout: headTime}
	s.wg.Go(func() { s.err = s.server.Serve(l) })
	return s, nil
}

func (s *shopServer) close() error {
	err := s.server.Close()
	s.wg.Wait()
	if !errors.Is(s.err, http.ErrServerClosed) {
		err = errors.Join(err, s.err)
	}
	return err
}
