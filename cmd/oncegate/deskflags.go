package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oncegate/internal/admin"
	"oncegate/internal/config"
	"oncegate/internal/operator"
)

// A desk answers operators: straight from the store, or by the API.
type desk interface {
	Find(ctx context.Context, q operator.Query) (operator.Page, error)
	ShowKey(ctx context.Context, scope, key string, body bool) ([]*operator.Life, error)
	Decide(ctx context.Context, d operator.Decision) ([]operator.Outcome, error)
	Stats(ctx context.Context, within time.Duration) (*operator.Stats, error)
}

// deskFlags say where operators' questions go.
type deskFlags struct {
	configFlags
	admin, tokenFile string
	asJSON           bool
}

func (f *deskFlags) add(cmd *cobra.Command) {
	f.configFlags.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.admin, "admin", "", "ask a running oncegate, at the `URL` of its admin address, and not the store; needs no configuration")
	flags.StringVar(&f.tokenFile, "token-file", "", "a `file` with the token for --admin; without it ONCEGATE_ADMIN_TOKEN, else the one in the state folder")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON, one object a line")
}

// errAskRunning is said beside the faults of a configuration that is not needed: a
// shell seldom has the secrets that serve has.
var errAskRunning = errors.New("without it, a running oncegate can be asked: --admin http://127.0.0.1:9181")

// withDesk lets do ask what the flags name.
func (p *program) withDesk(ctx context.Context, f *deskFlags, do func(context.Context, desk) error) error {
	limit := commandTime
	if f.admin != "" {
		limit = apiTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if f.admin != "" {
		client, err := p.client(f)
		if err != nil {
			return err
		}
		return do(ctx, client)
	}
	c, err := config.Load(f.options(p.env))
	if err != nil {
		return fmt.Errorf("%w; %w", err, errAskRunning)
	}
	return withStore(ctx, c, func(ctx context.Context, store backend) error {
		kept, err := evidenceFor(c)
		if err != nil {
			return err
		}
		direct := newDesk(store, store, nil, func() *config.Config { return c })
		if kept == nil {
			return do(ctx, direct)
		}
		direct.Evidence = kept
		return errors.Join(do(ctx, direct), kept.Close())
	})
}

// What bounds a command: straight on the store, and through the API, where an app
// may have to answer first.
const (
	commandTime = 30 * time.Second
	apiTime     = 10 * time.Minute
)

// client returns a client of the API that the flags name.
func (p *program) client(f *deskFlags) (*admin.Client, error) {
	at, err := url.Parse(f.admin)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, &usageError{errors.New("--admin must be a URL, as in http://127.0.0.1:9181")}
	}
	token, err := p.token(f)
	if err != nil {
		return nil, err
	}
	return &admin.Client{URL: at, Token: token, HTTP: http.DefaultClient}, nil
}

// token finds the token for the API.
func (p *program) token(f *deskFlags) (string, error) {
	if f.tokenFile != "" {
		text, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return "", &usageError{fmt.Errorf("--token-file: %w", err)}
		}
		return strings.TrimSpace(string(text)), nil
	}
	for _, variable := range p.env {
		if value, ok := strings.CutPrefix(variable, "ONCEGATE_ADMIN_TOKEN="); ok && value != "" {
			return value, nil
		}
	}
	dir, err := config.StateDir(f.options(p.env))
	if err != nil {
		return "", err
	}
	token, err := admin.ReadToken(dir)
	if err != nil {
		return "", fmt.Errorf("%w; --token-file or ONCEGATE_ADMIN_TOKEN says another, --state-dir where the state folder is", err)
	}
	return token, nil
}

// throughAPI makes the flags lead to the API of the oncegate that runs by the
// configuration, where they name none: some things only a running one can do.
func (p *program) throughAPI(f *deskFlags) error {
	if f.admin != "" {
		return nil
	}
	c, err := config.Load(f.options(p.env))
	if err != nil {
		return fmt.Errorf("%w; %w", err, errAskRunning)
	}
	host, port, err := net.SplitHostPort(c.Admin)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	f.admin = "http://" + net.JoinHostPort(host, port)
	return nil
}

// whoIs is the name under which something is decided.
func whoIs(as string) string {
	if as != "" {
		return as
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}

// ofDesk makes a desk's errors those that have exit codes.
func ofDesk(err error) error {
	switch {
	case errors.Is(err, operator.ErrQuery):
		return &usageError{err}
	case errors.Is(err, operator.ErrNotFound):
		return fmt.Errorf("%w: %w", errNotFound, err)
	}
	return err
}
