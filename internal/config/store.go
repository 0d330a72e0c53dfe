package config

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

const storeForms = "must be sqlite, sqlite:/path/to/file, or a URL that begins with postgres://, mysql://, redis://, rediss://, redis+cluster://, rediss+cluster://, redis+sentinel:// or rediss+sentinel://"

// storeSchemes maps a URL's scheme to the store's kind and to the scheme that
// drivers are given.
var storeSchemes = map[string]struct{ kind, scheme string }{
	"postgres": {"postgres", "postgres"}, "postgresql": {"postgres", "postgres"},
	"mysql": {"mysql", "mysql"}, "mariadb": {"mysql", "mysql"},
	"redis": {"redis", "redis"}, "rediss": {"redis", "rediss"},
	"redis+cluster": {"redis", "redis+cluster"}, "rediss+cluster": {"redis", "rediss+cluster"},
	"redis+sentinel": {"redis", "redis+sentinel"}, "rediss+sentinel": {"redis", "rediss+sentinel"},
}

var (
	pgIdentifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
	execModes    = []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"}
)

const maxPool = 1000

func (l *loader) compileStore(stateDir string) Store {
	s := l.store
	store := Store{
		Pool: value(s.Pool), Schema: value(s.Schema), ExecMode: value(s.ExecMode),
		Migrate: "auto", Replicas: value(s.Replicas), AcceptWeak: s.AcceptWeak,
	}
	if s.URL == nil {
		l.fault("store.url", "is missing; "+storeForms)
		return store
	}
	if text := *s.URL; text == "sqlite" || strings.HasPrefix(text, "sqlite:") {
		l.sqliteStore(&store, text, stateDir)
	} else {
		l.serverStore(&store, text)
	}
	if s.Migrate != nil {
		store.Migrate = *s.Migrate
		l.oneOf("store.migrate", s.Migrate, "auto", "never")
	}
	l.checkStore(store)
	if l.options.Readable != nil && store.Kind != "" && !l.faulty("store") {
		if err := l.options.Readable(store); err != nil {
			l.fault("store.url", "%s", err)
		}
	}
	return store
}

func (l *loader) sqliteStore(store *Store, text, stateDir string) {
	store.Kind = "sqlite"
	const none = "is for a store that is a server; sqlite has neither user nor password"
	if l.store.User != nil {
		l.fault("store.user", none)
	}
	if l.store.Password != nil {
		l.fault("store.password", none)
	}
	if text == "sqlite" {
		store.Path = filepath.Join(stateDir, "oncegate.db")
		return
	}
	path, err := url.PathUnescape(strings.TrimPrefix(strings.TrimPrefix(text, "sqlite:"), "//"))
	if err != nil || !absolute(path) {
		l.fault("store.url", "must name the file from the root on: sqlite:/path/to/file")
	}
	store.Path = filepath.Clean(path)
}

// serverStore reads the URL of a store that is a server. What is wrong with it
// is never said in the words of the URL parser, which quotes it.
func (l *loader) serverStore(store *Store, text string) {
	u, err := url.Parse(text)
	if err != nil {
		l.fault("store.url", "is no URL: a character needs escaping, or a host or port is wrong; user and password are easier to give as store.user and store.password, unescaped")
		return
	}
	known, ok := storeSchemes[u.Scheme]
	switch {
	case !ok:
		l.fault("store.url", storeForms)
		return
	case u.Hostname() == "":
		l.fault("store.url", "names no host")
	case u.Port() != "" && !validPort(u.Port()):
		l.fault("store.url", "has a port that is none")
	case u.Fragment != "":
		l.fault("store.url", "has a #, which begins no part of a store's URL; in a password write %%23, or use store.password")
	}
	store.Kind, u.Scheme = known.kind, known.scheme
	user, password := value(l.store.User), ""
	if l.store.Password != nil {
		password = l.secret("store.password", *l.store.Password)
	}
	switch {
	case l.store.User == nil && l.store.Password == nil:
	case u.User != nil:
		l.fault("store.url", "holds a user, and store.user or store.password is given too; keep one of both")
	case l.store.User == nil && known.kind != "redis":
		l.fault("store.user", "is missing beside store.password")
	case l.store.Password == nil:
		u.User = url.User(user)
	default:
		u.User = url.UserPassword(user, password)
	}
	store.URL = u.String()
}

// checkStore refuses what the kind of store does not have.
func (l *loader) checkStore(store Store) {
	s := l.store
	if store.Pool < 0 || store.Pool > maxPool {
		l.fault("store.pool", "must be between 0 and %d", maxPool)
	}
	if store.Kind != "sqlite" && store.Pool == 1 {
		l.fault("store.pool", "must be at least 2 for a store that is a server: one connection reads, so another must write")
	}
	if store.Kind != "postgres" && store.Kind != "" {
		if s.Schema != nil {
			l.fault("store.schema", "is for PostgreSQL only; remove it")
		}
		if s.ExecMode != nil {
			l.fault("store.exec_mode", "is for PostgreSQL only; remove it")
		}
	}
	if s.Schema != nil && !pgIdentifier.MatchString(*s.Schema) {
		l.fault("store.schema", "must be a plain name: letters, digits and _, at most 63")
	}
	l.oneOf("store.exec_mode", s.ExecMode, execModes...)
	if s.Replicas != nil && store.Kind != "redis" && store.Kind != "" {
		l.fault("store.replicas", "is for Redis only; remove it")
	}
	if store.Replicas < 0 || store.Replicas > 16 {
		l.fault("store.replicas", "must be between 0 and 16")
	}
	l.checkWeaknesses(store.Kind)
}
