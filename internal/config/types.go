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
	StateDir              string // absolute
	Store                 Store
	Namespace             string
	PublicURL             *url.URL // scheme and host only; nil where none is configured
	TrustedProxies        []netip.Prefix
	StoreTimeout          time.Duration
	DrainDelay            time.Duration // new connections are still served this long after SIGTERM
	DrainTimeout          time.Duration // then what is in hand has this long to finish
	MaxInHand             int
	MaxInHandBytes        int64
	EvidenceRetention     time.Duration // 0: no evidence is kept
	AdminTokens           []AdminToken  // in the order of their names
	// EncryptionKeys: the first one encrypts. None: nothing is encrypted.
	EncryptionKeys []EncryptionKey
	LogLevel       string // debug, info, warn, error
	// Upstream is where what is on no route goes; its zero value, where every
	// route has its own and the top level has none.
	Upstream Upstream
	Routes   []*Route // in the order of the file
	// Warnings are what a person should look at, one line each; none of them
	// keeps oncegate from starting.
	Warnings []string

	sources []source // the files that it was made from, those of secrets included
}

// An AdminToken lets its holder use the operators' listener.
type AdminToken struct {
	Name     string
	Token    string `json:"-"` // never printed
	ReadOnly bool
}

// An EncryptionKey encrypts what is stored.
type EncryptionKey struct {
	ID  string
	Key [32]byte `json:"-"` // never printed
}

// An Upstream says where the app is.
type Upstream struct {
	// Scheme is http, https, unix (HTTP over a unix socket) or fcgi.
	Scheme string
	// Address is host:port, or the absolute path of a socket.
	Address string
	// Host is the name for TLS; the Host header is always the sender's.
	Host string
	// Root is the document root of an fcgi upstream, an absolute path.
	Root string
	// IdleTimeout bounds how long an unused connection is kept; 0 keeps none.
	IdleTimeout time.Duration
}

// A Store says where claims are kept.
type Store struct {
	Kind string // sqlite, postgres, mysql, redis
	// URL is complete, credentials included: never printed. Its scheme is
	// postgres, mysql, redis, rediss, redis+cluster or rediss+cluster; it is
	// empty for sqlite.
	URL        string `json:"-"`
	Path       string // sqlite: the file, absolute
	Pool       int    // 0: the store's own choice
	Schema     string // postgres; empty: the first of the search path
	ExecMode   string // postgres; empty: the store's own choice
	Migrate    string // auto or never
	Replicas   int    // redis
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
	Name, Path string
	Provider   string // the preset's name; empty without one
	Scope      string // the route's name unless it says otherwise
	Methods    []string
	Mode       Mode
	Upstream   Upstream
	// Verifier is nil where `verify: none` was written out, and on a route that
	// is observed because its provider signs nothing.
	Verifier *verify.Verifier
	// Rules are nil on a route that has neither key nor tags, which is never
	// enforced. Where the route names its caller, that is the key's first part.
	Rules                *keyextract.Rules
	Batches              bool // each is set: a delivery may hold several events
	SplitBatches         bool // the app gets a batch's new events alone
	HasGuard             bool
	KeySigned            bool // the key lies within what is signed
	Handshakes           []Handshake
	OnMissingKey         string         // refuse, forward
	OnMismatch           string         // replay, refuse, run
	OnStoreOutage        string         // refuse, forward
	OnOverload           string         // refuse, forward
	OnUnknown            string         // retry, hold, witness
	Witness              *RouteWitness  // nil unless OnUnknown is witness
	Attempts             int            // 0: no limit
	UnknownStatuses      StatusSet      // never holds a 2xx
	Statuses             map[string]int // result word → status, where the provider wants another
	Record               string         // none, unsettled, headers, full
	Redact               []string       // headers that a request which is kept when done loses: what the route says, what carries the secret it is verified by, and of what the key is a digest
	Wait                 time.Duration
	Patience             time.Duration // 0: not known
	RetriesFor           time.Duration // 0: not known, or NeverRetries
	NeverRetries         bool
	Lease, AppLimit      time.Duration // AppLimit 0: the app ends with its connection
	UpstreamTimeout      time.Duration
	Retention            time.Duration
	MaxBody, MaxAnswer   int64
	MismatchCoversTarget bool             // the payload digest takes in method and target
	Preset               *provider.Preset // nil without one
}

// Horizon is how long after its first delivery an event may still come again by
// the sender's own doing. A claim that is not done by then is unfinished.
func (r *Route) Horizon() time.Duration {
	switch {
	case r.RetriesFor > 0:
		return r.RetriesFor
	case r.NeverRetries:
		return r.Lease + r.AppLimit // its one attempt has ended
	}
	return unknownHorizon
}

// unknownHorizon is for senders of whom it is not known how long they retry: as
// long as most of the known ones do.
const unknownHorizon = 3 * day

// A Handshake is a request of the provider's that is no event.
type Handshake struct {
	Name     string
	Methods  []string
	Unsigned bool // accepted without a signature, for this exact shape only
	When     *keyextract.Match
}

// A StatusSet is a set of HTTP statuses.
type StatusSet [600]bool

// Has reports whether status is in the set; a status outside 0..599 never is.
func (s *StatusSet) Has(status int) bool {
	return status >= 0 && status < len(s) && s[status]
}
