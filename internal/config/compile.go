package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

var (
	routeName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	visible64  = regexp.MustCompile(`^[\x21-\x7e]{1,64}$`)
	visible128 = regexp.MustCompile(`^[\x21-\x7e]{1,128}$`)
)

// maxRoutes bounds the labels that metrics and logs can have.
const maxRoutes = 1000

// compile makes the Config of what the layers say, and notes every fault.
func (l *loader) compile() *Config {
	l.checkTop()
	c := &Config{
		Listen: value(l.top.Listen), Health: value(l.top.Health), Admin: value(l.top.Admin),
		StoreTimeout: value(l.top.StoreTimeout),
		DrainDelay:   value(l.top.DrainDelay), DrainTimeout: value(l.top.DrainTimeout),
		MaxInHand: value(l.top.MaxInHand), MaxInHandBytes: int64(value(l.top.MaxInHandBytes)),
		LogLevel: value(l.top.LogLevel), EvidenceRetention: value(l.top.EvidenceRetention),
	}
	l.checkListeners(c)
	c.StateDir = l.stateDir()
	c.Store = l.compileStore(c.StateDir)
	l.checkSurroundings(c)
	c.Namespace = l.namespace(c.Store.Kind)
	c.PublicURL = l.publicURL()
	c.TrustedProxies = l.trustedProxies()
	c.AdminTokens = l.adminTokens()
	c.EncryptionKeys = l.encryptionKeys()
	if l.top.Upstream != nil {
		c.Upstream = l.upstream("upstream", *l.top.Upstream)
	}
	switch {
	case len(l.order) == 0:
		l.fault("routes", "has no route: nothing would be claimed")
	case len(l.order) > maxRoutes:
		l.fault("routes", "has more than %d routes", maxRoutes)
	default:
		c.Routes = l.compileRoutes(c)
	}
	return c
}

// value is what a pointer points to; the zero value where a fault left nothing.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// visible reports whether there is something to see of r: not of blanks, controls
// and marks such as those that some editors begin a file with.
func visible(r rune) bool {
	return !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r)
}

// stateDir finds the folder, and does not make it.
func (l *loader) stateDir() string {
	dir := value(l.top.StateDir)
	env := l.vars.env
	switch {
	case dir != "":
	case l.top.StateDir != nil:
		l.fault("state_dir", "is empty; name a folder")
		return ""
	case env["STATE_DIRECTORY"] != "":
		dir, _, _ = strings.Cut(env["STATE_DIRECTORY"], ":") // systemd lists several so
	case filepath.IsAbs(env["XDG_STATE_HOME"]):
		dir = filepath.Join(env["XDG_STATE_HOME"], "oncegate")
	case env["HOME"] != "":
		dir = filepath.Join(env["HOME"], ".local", "state", "oncegate")
	default:
		l.fault("state_dir", "is not given, and neither STATE_DIRECTORY, XDG_STATE_HOME nor HOME is set to find one; name a folder that outlives a deploy")
		return ""
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		l.fault("state_dir", "can't be made absolute (%s); write it from the root on", err)
	}
	return abs
}

func (l *loader) namespace(storeKind string) string {
	switch {
	case l.top.Namespace == nil && storeKind == "sqlite":
		return "default"
	case l.top.Namespace == nil && storeKind != "":
		l.fault("namespace", "is required with a store that other apps may share; name this app, as in namespace: shop")
	case l.top.Namespace != nil && !visible64.MatchString(*l.top.Namespace):
		l.fault("namespace", "must be 1 to 64 characters of visible ASCII")
	}
	return value(l.top.Namespace)
}

func (l *loader) publicURL() *url.URL {
	if l.top.PublicURL == nil {
		return nil
	}
	u, err := url.Parse(*l.top.PublicURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		strings.TrimSuffix(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		l.fault("public_url", "must be what senders were told up to the path, and no more: https://shop.example")
		return nil
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}
}

func (l *loader) trustedProxies() (prefixes []netip.Prefix) {
	for i, text := range l.top.TrustedProxies {
		prefix, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); err != nil && addrErr == nil && addr.Zone() == "" {
			prefix, err = addr.Prefix(addr.BitLen())
		}
		switch {
		case err != nil:
			l.fault(item("trusted_proxies", i), "must be an address or a prefix, as in 10.0.0.0/8")
		case prefix != prefix.Masked():
			l.fault(item("trusted_proxies", i), "has bits set beyond its prefix length; did you mean %s?", prefix.Masked())
		default:
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

// item is the field of one item of a list.
func item(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// maxSecretFile bounds a file that holds one secret; a certificate chain fits.
const maxSecretFile = 64 << 10

// secret returns the secret that text is, or that stands in the file it names,
// less one trailing newline there (editors and `kubectl create secret` add it).
func (l *loader) secret(field, text string) string {
	path, ok := strings.CutPrefix(text, "file:")
	if ok {
		if !filepath.IsAbs(path) {
			l.fault(field, "must name its file from the root on: file:/path")
			return ""
		}
		data, err := l.read(path, maxSecretFile)
		if err != nil {
			l.fault(field, "can't read its file: %s", err)
			return ""
		}
		text = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	}
	switch {
	case strings.ContainsFunc(text, visible):
		l.hidden = append(l.hidden, text)
	case ok:
		l.fault(field, "is empty: the file %s holds nothing but blanks", path)
	default:
		l.fault(field, "is empty; a secret that is missing must not let everyone in")
	}
	return text
}
