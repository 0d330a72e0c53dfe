package verify

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
)

// An allowList says from where deliveries may come. It adds to a scheme and is
// none itself: addresses are shared, and forged where a proxy is misconfigured.
type allowList struct{ prefixes []netip.Prefix }

func (c *compiler) ips(field string, s *Spec) scheme {
	a := &allowList{}
	for _, text := range s.IPs {
		prefix, err := parsePrefix(text)
		if c.note(field+".ips", err) {
			a.prefixes = append(a.prefixes, prefix.Masked())
		}
	}
	return a
}

func parsePrefix(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(addr, addr.BitLen()), nil
}

func (a *allowList) verify(_ context.Context, r *request) error {
	remote := r.Remote.Unmap()
	for _, p := range a.prefixes {
		if p.Contains(remote) {
			return nil
		}
	}
	return &Error{Kind: Mismatch, Place: "sender's address", Detail: "not among the allowed ones"}
}

func (a *allowList) plausible(http.Header) error { return nil }
func (a *allowList) sign(*signing) error         { return nil }
func (a *allowList) judges() bool                { return false }
func (a *allowList) accepts(string) error        { return nil }
