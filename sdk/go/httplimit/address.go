package httplimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// proxies are the networks whose X-Forwarded-For counts.
type proxies []netip.Prefix

func parseProxies(networks []string) (proxies, error) {
	var parsed proxies
	for _, text := range networks {
		text = strings.TrimSpace(text)
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			var address netip.Addr
			address, err = netip.ParseAddr(text)
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("httplimit: %q is not a network; write 10.0.0.0/8 or 2001:db8::/32", text)
		}
		parsed = append(parsed, prefix.Masked())
	}
	return parsed, nil
}

// client is the address nearest to this server that is no trusted proxy.
//
// Every proxy appends the address of its own peer, so that only the right end of X-Forwarded-For is not the client's.
// What is not an address ends the walk at the proxy that wrote it. A Unix domain socket has no address: its permissions
// say who may connect.
func (p proxies) client(r *http.Request) string {
	var client netip.Addr
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		client = plain(peer.Addr())
	} else if r.RemoteAddr != "" && r.RemoteAddr != "@" {
		return ""
	}
	fields := r.Header.Values("X-Forwarded-For")
	entries := strings.Split(strings.Join(fields, ","), ",")
	for index := len(entries) - 1; index >= 0 && len(fields) > 0 && p.trust(client); index-- {
		address, err := netip.ParseAddr(strings.Trim(entries[index], " \t"))
		if err != nil {
			break
		}
		client = plain(address)
	}
	if !client.IsValid() {
		return ""
	}
	return client.String()
}

func (p proxies) trust(address netip.Addr) bool {
	if !address.IsValid() {
		return len(p) > 0
	}
	for _, network := range p {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// plain is an address without zone, and IPv4 as such.
func plain(address netip.Addr) netip.Addr { return address.WithZone("").Unmap() }
