package proxy

import (
	"net/netip"
	"slices"
	"strings"
)

// peel walks X-Forwarded-For from its end, as far as the addresses are those of
// trusted proxies, and returns the first that is not. An entry that is no
// address ends the walk: what stands before it is hearsay.
func peel(trusted []netip.Prefix, peer netip.Addr, lines []string) netip.Addr {
	isTrusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	addr := peer
	hops := strings.Split(strings.Join(lines, ","), ",")
	for i := len(hops) - 1; i >= 0 && isTrusted(addr); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = next.Unmap()
	}
	return addr
}
