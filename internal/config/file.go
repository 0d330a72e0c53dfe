package config

import (
	"time"

	"go.yaml.in/yaml/v3"

	"oncegate/internal/strictyaml"
	"oncegate/keyextract"
	"oncegate/provider"
	"oncegate/witness"
)

// topLevel is what a file says, as written. A nil field was not written. The
// comments here and below are the rows of docs/config.md.
type topLevel struct {
	// The format of this file; always 1.
	Version *int `yaml:"version"`
	// Address of the public listener, where senders and users arrive.
	Listen *string `yaml:"listen" env:"LISTEN"`
	// Address of the listener for /livez, /readyz and /metrics. It shows nothing secret and asks for no token.
	Health *string `yaml:"health" env:"HEALTH"`
	// Address of the operators' listener. It always asks for a token.
	Admin *string `yaml:"admin" env:"ADMIN"`
	// Folder for the SQLite file, the journal and the admin token; it must outlive a deploy. Without it: $STATE_DIRECTORY (set by systemd), else oncegate in the XDG state folder.
	StateDir *string `yaml:"state_dir" env:"STATE_DIR"`
	// Where the app is: http://host:port, https://host:port, http+unix:/path/to.sock, fcgi://host:port?root=/app/public or fcgi+unix:/path/to.sock?root=/app/public. Required, unless every route has its own.
	Upstream *string `yaml:"upstream" env:"UPSTREAM"`
	// How long an unused connection to the app is kept. It must be shorter than the app's own limit; 0 keeps none.
	UpstreamIdleTimeout *time.Duration `yaml:"upstream_idle_timeout" env:"UPSTREAM_IDLE_TIMEOUT"`
	// Where claims are kept: sqlite, or a URL, or a mapping (see below).
	Store yaml.Node `yaml:"store"`
	// The longest a delivery waits for the store before it is answered `unavailable`.
	StoreTimeout *time.Duration `yaml:"store_timeout" env:"STORE_TIMEOUT"`
	// Which apps share claims: at most 64 characters of visible ASCII. Required unless the store is sqlite, where it is `default`.
	Namespace *string `yaml:"namespace" env:"NAMESPACE"`
	// What senders were told, without a path: https://shop.example. Needed by signatures that take in the URL.
	PublicURL *string `yaml:"public_url" env:"PUBLIC_URL"`
	// Addresses and prefixes whose X-Forwarded-For is believed; one or a list. Without it none is.
	TrustedProxies []string `yaml:"trusted_proxies" env:"TRUSTED_PROXIES"`
	// How many deliveries may be in hand at once; one more is answered `overload`.
	MaxInHand *int `yaml:"max_in_hand" env:"MAX_IN_HAND"`
	// How many bytes of bodies and answers may be in hand at once.
	MaxInHandBytes *strictyaml.Size `yaml:"max_in_hand_bytes" env:"MAX_IN_HAND_BYTES"`
	// How long new connections are still served after SIGTERM, while readiness already says no. Kubernetes needs a few seconds; 0 elsewhere.
	DrainDelay *time.Duration `yaml:"drain_delay" env:"DRAIN_DELAY"`
	// How long what is in hand then has to finish, before it is cut and marked unknown.
	DrainTimeout *time.Duration `yaml:"drain_timeout" env:"DRAIN_TIMEOUT"`
	// How long after SIGTERM the process is killed: Kubernetes' terminationGracePeriodSeconds, systemd's TimeoutStopSec. drain_delay, drain_timeout, store_timeout and 10s for what follows must fit in it. 0: not known, nothing is checked.
	KilledAfter *time.Duration `yaml:"killed_after" env:"KILLED_AFTER"`
	// Processes on several hosts serve this app, as in Kubernetes: a store that is a file is refused, since each host would have its own.
	SeveralHosts *bool `yaml:"several_hosts" env:"SEVERAL_HOSTS"`
	// How long it is kept what was decided and answered about each delivery, with the sender's address and what the app said (see below). 0: nothing is kept.
	EvidenceRetention *time.Duration `yaml:"evidence_retention" env:"EVIDENCE_RETENTION"`
	// The least level that is logged: debug, info, warn or error.
	LogLevel *string `yaml:"log_level" env:"LOG_LEVEL"`
	// Tokens for the operators' listener beside the one in the state folder, by the name that is written beside what they decide (see below).
	AdminTokens map[string]tokenSpec `yaml:"admin_tokens"`
	// Keys under which stored answers, kept requests and evidence are encrypted. The first one encrypts, all of them decrypt (see below).
	EncryptionKeys []keySpec `yaml:"encryption_keys"`
	// The routes, by name (see below). A name is at most 64 letters, digits, - and _.
	Routes map[string]routeSpec `yaml:"routes"`

	policy `yaml:",inline"`
}

// policy is what both the top level and a route may say.
type policy struct {
	// What is done with deliveries: enforce; observe (forwarded each time, and only counted); off (as if there were no route). A preset that is not safe to enforce makes enforce into observe, unless the route itself says enforce.
	Mode *string `yaml:"mode" env:"MODE"`
	// A delivery without a usable event key: refuse, or forward it unclaimed.
	OnMissingKey *string `yaml:"on_missing_key" env:"ON_MISSING_KEY"`
	// A delivery with the key of an earlier one, and another body: replay the stored answer, refuse, or run (the body's digest becomes part of the event key). The default is the preset's, which knows whether its provider changes the body; else refuse where the key lies outside the signature.
	OnMismatch *string `yaml:"on_mismatch" env:"ON_MISMATCH"`
	// The store is out of reach: refuse, or forward unclaimed. The default is forward where the sender never retries.
	OnStoreOutage *string `yaml:"on_store_outage" env:"ON_STORE_OUTAGE"`
	// Too much is in hand: refuse, or forward unclaimed. The default is forward where the sender never retries.
	OnOverload *string `yaml:"on_overload" env:"ON_OVERLOAD"`
	// An attempt ended unknown: retry with the next delivery; hold until an operator decides; or ask a witness whether the effect exists.
	OnUnknown *string `yaml:"on_unknown" env:"ON_UNKNOWN"`
	// After how many endings without an answer of the app's own `retry` becomes `hold`. 0: no limit.
	Attempts *int `yaml:"attempts" env:"ATTEMPTS"`
	// Answers after which the outcome is unknown: statuses and classes, as in [5xx, -503]; a minus takes one out again.
	UnknownStatuses []string `yaml:"unknown_statuses" env:"UNKNOWN_STATUSES"`
	// What is kept of requests: none; unsettled (the whole request, until its claim is done); headers (the same, and then all but the body); full (for as long as the claim). `on_unknown: hold` and `witness` make it unsettled. Whatever it says, a claim whose outcome is unknown keeps its request where the attempt's process lived to write that. Of a batch every event keeps the whole request, unless that would be more than 64 MiB in all: then none keeps it, and they can't be run again without the provider.
	Record *string `yaml:"record" env:"RECORD"`
	// Headers that a kept request loses when its claim is done, beside Authorization, Proxy-Authorization, Cookie and those that the route is verified by and that carry a secret as it is (a token), or that its `caller` stands in (unless it says `as`).
	Redact []string `yaml:"redact" env:"REDACT"`
	// How long a duplicate waits for the attempt that is running. The default is 80 % of `patience`, and 4s where that is not known.
	Wait *time.Duration `yaml:"wait" env:"WAIT"`
	// How long a settled claim is kept after its last change. It must be longer than the sender retries.
	Retention *time.Duration `yaml:"retention" env:"RETENTION"`
	// How long a running claim may go without renewal before it counts as lost: 1s to 10m.
	Lease *time.Duration `yaml:"lease" env:"LEASE"`
	// The longest the app can work on one request, its queue included: php-fpm's request_terminate_timeout. 0: the app ends with its connection.
	AppLimit *time.Duration `yaml:"app_limit" env:"APP_LIMIT"`
	// The longest an attempt waits for the app's answer. The default is `app_limit`, and 120s where that is 0.
	UpstreamTimeout *time.Duration `yaml:"upstream_timeout" env:"UPSTREAM_TIMEOUT"`
	// The largest body that a delivery may have.
	MaxBody *strictyaml.Size `yaml:"max_body" env:"MAX_BODY"`
	// The largest answer that is kept for replay. Of a larger one only status and headers are. 0 keeps no body at all. Of a batch every event keeps the whole answer, unless that would be more than 16 MiB in all: then the first one alone does.
	MaxAnswer *strictyaml.Size `yaml:"max_answer" env:"MAX_ANSWER"`
}

// routeSpec is what a file says about one route.
type routeSpec struct {
	// The path at which deliveries arrive. Every form of it that the app would take for the same path is the route too. Required.
	Path *string `yaml:"path"`
	// The preset: verification, key, patience, retries, statuses, tags. `oncegate providers` lists them.
	Provider *string `yaml:"provider"`
	// The signing secrets, one or a list; any of them may fit. file:/path reads one from a file.
	Secrets []string `yaml:"secrets"`
	// For tests: a key of one's own, in PEM, in place of those that are fetched from the provider (PayPal, Amazon SNS, Plaid, Pub/Sub). The provider's deliveries are refused then, and whoever holds the private key can make events. `oncegate send --make-key FILE` makes one. file:/path reads it from a file.
	TestKey *string `yaml:"test_key"`
	// Values that the preset's scheme needs beside the secrets, by name.
	Params map[string]string `yaml:"params"`
	// The signature scheme, or a list of schemes that must all hold; none only where it is written out. Required without a preset.
	Verify yaml.Node `yaml:"verify"`
	// The event key's parts. Required without a preset.
	Key []keyextract.Part `yaml:"key"`
	// The body is a batch: a JSON pointer to the array of its events (/events; # is a body that is the array), or xml: and the path of its elements.
	Each *string `yaml:"each"`
	// What the app gets of a batch that holds new events beside some that are done: whole (the default), as it came, so that the signature still fits; or split: the new events alone, each as its text came, for an app that does not check signatures.
	Batch *string `yaml:"batch"`
	// A second key of the same event, such as {digest: body} where the ID is not signed.
	Guard []keyextract.Part `yaml:"guard"`
	// What operators can search by, by name. Added to the preset's.
	Tags map[string]keyextract.Part `yaml:"tags"`
	// Who sends a request, where clients make the key themselves; a digest of it becomes the first part of the event key, so that nobody gets another's answer. Required with the preset idempotency-key.
	Caller *keyextract.Part `yaml:"caller"`
	// Requests of the provider's that are no events: forwarded each time, never claimed. In place of the preset's.
	Handshakes []provider.Handshake `yaml:"handshakes"`
	// What claims are kept under. Routes with one scope share claims. It holds no colon. Without it, the route's name.
	Scope *string `yaml:"scope"`
	// The methods that carry events. Without it the preset's, else POST. Other methods are refused, but for GET, HEAD (unless GET carries events) and OPTIONS without a body.
	Methods []string `yaml:"methods"`
	// An app of this route's own.
	Upstream *string `yaml:"upstream"`
	// The HTTP status (400 to 599) for a result word, where the sender understands another better: {busy: 409}.
	Statuses map[string]int `yaml:"statuses"`
	// How long the sender waits for an answer. Without it the preset's; 0 or neither: not known.
	Patience *time.Duration `yaml:"patience"`
	// How long after the first try the sender's last one comes. Without it the preset's; 0: the sender never retries.
	RetriesFor *time.Duration `yaml:"retries_for"`
	// Whom to ask with on_unknown: witness, a list of rules (see below). The first one whose condition holds is asked.
	Witness []witness.Spec `yaml:"witness"`
	// Where the rules' SQL is asked.
	WitnessDB *witnessDBSpec `yaml:"witness_db"`
	// What deliveries get of an event whose effect a witness has found, in place of the app's answer: status (200) and body.
	WitnessAnswer *witnessAnswerSpec `yaml:"witness_answer"`

	policy `yaml:",inline"`
}

// witnessDBSpec is the database that a witness's SQL is asked of.
type witnessDBSpec struct {
	// postgres://host:5432/db, mysql://host:3306/db (MariaDB too) or sqlite:///path/to/file. Never a replica's. Required.
	URL *string `yaml:"url"`
	// The user, where the URL holds none. One that can only read is best.
	User *string `yaml:"user"`
	// The password, where the URL holds none: any characters, not escaped. file:/path reads it from a file.
	Password *string `yaml:"password"`
}

// witnessAnswerSpec is an answer that stands for the app's.
type witnessAnswerSpec struct {
	// A status between 200 and 299.
	Status *int `yaml:"status"`
	// The body.
	Body *string `yaml:"body"`
}

// tokenSpec is a token for the operators' listener.
type tokenSpec struct {
	// The token, of at least 20 characters. file:/path reads it from a file. Required.
	Token *string `yaml:"token"`
	// The token can look, and decide nothing.
	ReadOnly bool `yaml:"read_only"`
}

// keySpec is a key for what is stored.
type keySpec struct {
	// What the key is called in what is encrypted under it: 1 to 32 letters, digits, - and _. It never changes. Required.
	ID *string `yaml:"id"`
	// 32 random bytes in base64, as `openssl rand -base64 32` makes them. file:/path reads them from a file. Required.
	Key *string `yaml:"key"`
}

// storeSpec is the mapping that store may be.
type storeSpec struct {
	// sqlite, sqlite:/path/to/file, postgres://host/db, mysql://host/db, redis://host, rediss://host, redis+cluster://host or redis+sentinel://host?master_name=name (with rediss, TLS).
	URL *string `yaml:"url" env:"STORE"`
	// The user, where the URL holds none.
	User *string `yaml:"user" env:"STORE_USER"`
	// The password, where the URL holds none: any characters, not escaped. file:/path reads it from a file.
	Password *string `yaml:"password" env:"STORE_PASSWORD"`
	// How many connections are kept at most. 0: the store's own choice.
	Pool *int `yaml:"pool" env:"STORE_POOL"`
	// The PostgreSQL schema that holds the tables. Without it, the first of the search path.
	Schema *string `yaml:"schema" env:"STORE_SCHEMA"`
	// How PostgreSQL is asked: cache_statement, cache_describe, describe_exec, exec or simple_protocol. Without it, what works behind a pooler too.
	ExecMode *string `yaml:"exec_mode" env:"STORE_EXEC_MODE"`
	// Whether tables are made and changed at start: auto (the default), or never (`oncegate migrate` does it).
	Migrate *string `yaml:"migrate" env:"STORE_MIGRATE"`
	// How many Redis replicas must have a change before it counts; on their disks where the server has WAITAOF. Where they don't follow in time, deliveries are refused. 0: none.
	Replicas *int `yaml:"replicas" env:"STORE_REPLICAS"`
	// Weaknesses that are accepted, by name; docs/stores.md lists them.
	AcceptWeak []string `yaml:"accept_weak" env:"STORE_ACCEPT_WEAK"`
}
