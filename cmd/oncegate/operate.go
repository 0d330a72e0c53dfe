package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"oncegate/internal/admin"
	"oncegate/internal/config"
	"oncegate/internal/evidence"
	"oncegate/internal/operator"
	"oncegate/lock"
)

// newDesk answers operators straight from a store.
func newDesk(store lock.Store, catalog lock.Catalog, kept evidence.Store, current func() *config.Config) *operator.Desk {
	return &operator.Desk{
		Store: store, Catalog: catalog, Evidence: kept, Namespace: current().Namespace,
		Scopes: func() []operator.Scope { return scopesOf(current()) },
	}
}

// scopesOf are the scopes of all routes. Of several routes the longest times
// count.
func scopesOf(c *config.Config) (scopes []operator.Scope) {
	at := map[string]int{}
	for _, r := range c.Routes {
		i, ok := at[r.Scope]
		if !ok {
			i = len(scopes)
			at[r.Scope] = i
			scopes = append(scopes, operator.Scope{Name: r.Scope})
		}
		scopes[i].Retention = max(scopes[i].Retention, r.Retention)
		scopes[i].Horizon = max(scopes[i].Horizon, r.Horizon())
		scopes[i].Guarded = scopes[i].Guarded || r.HasGuard
	}
	return scopes
}

// openAdmin makes the operators' listener ready to serve.
func (s *service) openAdmin(c *config.Config) {
	desk := newDesk(s.store, s.store, nil, s.current.Load)
	if s.evidence != nil {
		desk.Evidence = s.evidence
	}
	desk.Rerun, desk.Forwardable = s.rerun, s.handler.CanRerun
	desk.Decided = s.decided
	own, err := admin.OwnToken(c.StateDir)
	if err != nil {
		s.log.Error("there is no operators' token of the state folder's; admin_tokens alone let operators in", "error", err)
	}
	s.admin = admin.New(admin.Options{
		Desk: desk, Tokens: func() []admin.Token { return tokensOf(s.current.Load(), own) },
		Refused: s.recorder.Refused, Hosts: hostsOf(c.Admin), Log: s.log,
	})
}

// tokensOf are those that the configuration names, and the state folder's own.
func tokensOf(c *config.Config, own string) []admin.Token {
	tokens := []admin.Token{{Name: config.OwnToken, Secret: own}}
	for _, t := range c.AdminTokens {
		tokens = append(tokens, admin.Token{Name: t.Name, Secret: t.Token, ReadOnly: t.ReadOnly})
	}
	return tokens
}

// hostsOf is the name in a listener's address, if it is one.
func hostsOf(address string) []string {
	host, _, err := net.SplitHostPort(address)
	if _, not := netip.ParseAddr(host); err != nil || host == "" || not == nil {
		return nil
	}
	return []string{strings.ToLower(host)}
}

// rerun forwards a kept request for an operator.
func (s *service) rerun(ctx context.Context, scope string, request []byte) (operator.Run, error) {
	out, err := s.handler.Rerun(ctx, scope, request)
	return operator.Run{Result: string(out.Result), Attempt: out.Attempt, Status: out.Status}, err
}

// decided says what an operator decided.
func (s *service) decided(verb lock.Verb, d operator.Decision, o operator.Outcome) {
	s.tel.Decided(verb)
	key := o.Key
	if verb == lock.VerbForget {
		key = "" // not even here
	}
	s.log.Warn("an operator decided", "verb", verb.String(), "who", d.Who, "reason", d.Reason,
		"scope", o.Scope, "digest", o.Digest.String(), "key", key, "state", o.State, "code", o.Code)
}

func (s *service) serveAdmin() {
	s.serving.Go(func() {
		if err := s.admin.Serve(s.adminListener); err != nil {
			s.broken <- fmt.Errorf("admin listener: %w", err)
		}
	})
}

// closeAdmin lets what operators have asked be answered, for a while.
func (s *service) closeAdmin() error {
	ctx, cancel := shortly(lastOperators)
	defer cancel()
	if err := s.admin.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil // what was cut goes on, but for its answer
}

func (s *service) adminAddr() string { return s.adminListener.Addr().String() }
