// Package admin is the operators' API, and its client.
//
//	tokens, err := admin.OwnToken("/var/lib/oncegate")
//	server := admin.New(admin.Options{Desk: desk, Tokens: tokens, Hosts: hosts, Log: log})
//	err = server.Serve(listener)
//
// # What it takes
//
// JSON under /v1; GET /v1/openapi.json says all of it, and a test holds the
// server to it. Each request needs a token (Authorization: Bearer ...), which
// says who acts and may be allowed to look only. A refusal is a problem document
// (RFC 9457) with a code.
//
// # Who is kept out
//
// A browser that a page leads here (DNS rebinding): the Host header must name an
// address, localhost, or the configured host, and a request that a page of
// another origin makes is refused. There are no cookies and no CORS. All tokens
// are compared, each in constant time.
//
// # Bounds
//
// Requests at once, their heads, bodies and times, and what one may list are
// bounded. The listener shares nothing with traffic but the store.
package admin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"oncegate/internal/evidence"
	"oncegate/internal/operator"
)

//go:embed openapi.json
var openAPI []byte

// Options say what New needs.
type Options struct {
	Desk *operator.Desk
	// Tokens returns the tokens that stand now.
	Tokens func() []Token
	// Refused returns samples of what was refused.
	Refused func() []evidence.Refused
	// Hosts are names by which the listener may be called, beside addresses and
	// localhost.
	Hosts []string
	Log   *slog.Logger
}

// A Server answers operators. Its methods may be called concurrently.
type Server struct {
	o    Options
	http http.Server
	room chan struct{}
	// wrong is when a wrong token was last logged, in Unix seconds.
	wrong atomic.Int64
}

const (
	mostConnections = 64
	mostAtOnce      = 16
	mostBody        = 1 << 20
	answerTime      = time.Minute
	// A rerun takes as long as the app.
	decisionTime = 30 * time.Minute
)

// apiHeader stands on every answer, so that a client that was led elsewhere, to
// an app behind the public address, does not take its answer for one of ours.
const apiHeader = "Oncegate-Api"

// New returns a server.
func New(o Options) *Server {
	s := &Server{o: o, room: make(chan struct{}, mostAtOnce)}
	mux := http.NewServeMux()
	for _, e := range s.endpoints() {
		mux.Handle(e.method+" "+e.path, s.guarded(e))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if _, ok := s.admit(w, r); ok {
			problem(w, http.StatusNotFound, "not_found", "There is nothing here; /v1/openapi.json says what there is.")
		}
	})
	s.http = http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// Serve answers on l until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(netutil.LimitListener(l, mostConnections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown lets what is under way finish until ctx is over, then cuts it.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}

// An endpoint is one thing that can be asked.
type endpoint struct {
	method, path string
	decides      bool // a token that may only look is refused
	do           func(*Server, *http.Request, Token) (any, error)
}

func (s *Server) endpoints() []endpoint {
	return []endpoint{
		{"GET", "/v1/claims", false, (*Server).find},
		{"GET", "/v1/claims/{scope}/{digest}", false, (*Server).show},
		{"GET", "/v1/events", false, (*Server).events},
		{"POST", "/v1/decisions", true, (*Server).decide},
		{"GET", "/v1/stats", false, (*Server).stats},
		{"GET", "/v1/refused", false, (*Server).refused},
		{"GET", "/v1/openapi.json", false, func(*Server, *http.Request, Token) (any, error) { return json.RawMessage(openAPI), nil }},
	}
}

// guarded lets those through who may ask e, as far as there is room.
func (s *Server) guarded(e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := s.admit(w, r)
		if !ok {
			return
		}
		if e.decides && who.ReadOnly {
			s.o.Log.Warn("an operator's token that may only look was used to decide", "token", who.Name)
			problem(w, http.StatusForbidden, "read_only", "This token may look, and decide nothing.")
			return
		}
		select {
		case s.room <- struct{}{}:
			defer func() { <-s.room }()
		default:
			w.Header().Set("Retry-After", "1")
			problem(w, http.StatusServiceUnavailable, "overload", "Too much is asked at once.")
			return
		}
		limit := answerTime
		if e.decides {
			limit = decisionTime
		}
		// An error says that this connection has no deadlines.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		result, err := e.do(s, r.WithContext(ctx), who)
		if err != nil {
			s.fail(w, err)
			return
		}
		answer(w, http.StatusOK, "application/json", result)
	})
}

// admit checks where a request says that it goes, and whose it is.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (Token, bool) {
	w.Header().Set(apiHeader, "v1")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !s.named(r.Host) {
		problem(w, http.StatusMisdirectedRequest, "host", "The Host header names neither an address nor this listener.")
		return Token{}, false
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		problem(w, http.StatusForbidden, "origin", "A page of another origin may ask nothing here.")
		return Token{}, false
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	who, ok := whose(s.o.Tokens(), secret)
	if !strings.EqualFold(scheme, "Bearer") || !ok {
		if secret != "" {
			s.wrongToken(r.RemoteAddr)
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="oncegate"`)
		problem(w, http.StatusUnauthorized, "token", "This needs a token: Authorization: Bearer ...; the first one is in admin.token in the state folder.")
		return Token{}, false
	}
	return who, true
}

// wrongToken logs that a token was wrong, once a second at most.
func (s *Server) wrongToken(remote string) {
	now := time.Now().Unix()
	if last := s.wrong.Load(); last != now && s.wrong.CompareAndSwap(last, now) {
		s.o.Log.Warn("an operator's token was wrong", "remote", remote)
	}
}

// named reports whether a Host header is one by which this listener is called.
func (s *Server) named(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" || slices.Contains(s.o.Hosts, host) {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// fail answers with what went wrong.
func (s *Server) fail(w http.ResponseWriter, err error) {
	status, code := statusOf(err)
	if status >= http.StatusInternalServerError {
		s.o.Log.Warn("an operator's question was not answered", "error", err)
	}
	problem(w, status, code, err.Error())
}

// A problem is a problem document (RFC 9457).
type problemDocument struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
}

func problem(w http.ResponseWriter, status int, code, detail string) {
	answer(w, status, "application/problem+json", problemDocument{"about:blank", http.StatusText(status), status, detail, code})
}

func answer(w http.ResponseWriter, status int, kind string, body any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	// Who asked may be gone; there is nobody else to tell.
	_ = json.NewEncoder(w).Encode(body)
}
