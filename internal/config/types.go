package config

import (
	"net/netip"
	"net/url"
	"time"

	"oncegate/keyextract"
	"oncegate/provider"
	"oncegate/verify"
)

// A Config is what oncegate runs by: checked, complete, immutable. A request
// takes the pointer to it once and keeps to it.
type Config struct {
	Listen, Health, Admin string
	StateDir              string
	Upstream              Upstream
	Store                 Store
	Namespace             string
	PublicURL             *url.URL // nil where none is configured
	TrustedProxies        []netip.Prefix
	StoreTimeout          time.Duration
	DrainDelay            time.Duration // new connections are still served this long after SIGTERM
	DrainTimeout          time.Duration // then what is in hand has this long to finish
	MaxInHand             int
	MaxInHandBytes        int64
	LogLevel              string
	Routes                []*Route // in the order of the file
	Warnings              []string
}

// An Upstream says where the app is.
type Upstream struct {
	// Scheme is http, https, unix (HTTP over a unix socket) or fcgi.
	Scheme string
	// Address is host:port, or the socket's path.
	Address string
	// Host is the name for TLS; the Host header is always the sender's.
	Host string
	// Root is the document root of an fcgi upstream.
	Root string
	// IdleTimeout bounds how long an unused connection is kept.
	IdleTimeout time.Duration
}

// A Store says where claims are kept.
type Store struct {
	Kind       string // sqlite, postgres, mysql, redis
	URL        string // complete, credentials included: never printed
	Path       string // sqlite: the file
	Pool       int
	Schema     string
	ExecMode   string
	Migrate    string // auto or never
	Replicas   int
	AcceptWeak []string
}

// A Mode says what a route does with its deliveries.
type Mode string

const (
	ModeEnforce Mode = "enforce"
	ModeObserve Mode = "observe"
	ModeOff     Mode = "off"
)

// A Route is one configured path: where deliveries of one provider arrive,
// complete with what the preset, the file's top level and the built-in
// defaults say.
type Route struct {
	Name, Path, Provider string
	Scope                string // the route's name unless it says otherwise
	Methods              []string
	Mode                 Mode
	Upstream             Upstream
	Verifier             *verify.Verifier // nil: `verify: none` was written out
	Rules                *keyextract.Rules
	HasGuard             bool
	Handshakes           []Handshake
	Caller               *keyextract.Rules // idempotency-key: names the caller under "caller"
	OnMissingKey         string            // refuse, forward
	OnMismatch           string            // replay, refuse, run
	OnStoreOutage        string            // refuse, forward
	OnOverload           string            // refuse, forward
	OnUnknown            string            // retry, hold
	Attempts             int               // 0: no limit
	UnknownStatuses      StatusSet
	Statuses             map[string]int // result word → status, where the provider wants another
	Record               string         // none, unsettled, headers, full
	Wait                 time.Duration
	Patience             time.Duration
	RetriesFor           time.Duration
	NeverRetries         bool
	Lease, AppLimit      time.Duration
	UpstreamTimeout      time.Duration
	Retention            time.Duration
	MaxBody, MaxAnswer   int64
	MismatchCoversTarget bool // the payload digest takes in method and target
	Preset               *provider.Preset
}

// A Handshake is a request of the provider's that is no event.
type Handshake struct {
	Name     string
	Methods  []string
	Unsigned bool // accepted without a signature, for this exact shape only
	When     *keyextract.Match
}

// A StatusSet is a set of HTTP statuses.
type StatusSet [600]bool
