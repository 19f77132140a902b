package dev.tollgate.servlet;

import jakarta.servlet.http.HttpServletRequest;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Collections;
import java.util.List;
import java.util.regex.Pattern;

/**
 * The address nearest to this server that is no trusted proxy. Every proxy appends the address of its own peer, so that only the right end of
 * X-Forwarded-For is not the client's. What is not an address ends the walk at the proxy that wrote it.
 */
final class ClientAddress {
    /** An entry may only look like this before it is given to the JDK, which would look a name up. */
    private static final Pattern V4 = Pattern.compile("(?:0|[1-9][0-9]{0,2})(?:\\.(?:0|[1-9][0-9]{0,2})){3}");
    private static final Pattern V6 = Pattern.compile("[0-9a-fA-F:]*:[0-9a-fA-F:.]*");

    private record Network(byte[] address, int bits) {
        boolean contains(byte[] other) {
            if (other.length != address.length) return false;
            for (int bit = 0; bit < bits; bit++) {
                var mask = 0x80 >> (bit % 8);
                if ((address[bit / 8] & mask) != (other[bit / 8] & mask)) return false;
            }
            return true;
        }
    }

    private final List<Network> trusted;

    ClientAddress(List<String> networks) {
        this.trusted = networks.stream().map(ClientAddress::network).toList();
    }

    private static Network network(String text) {
        var parts = text.strip().split("/", 2);
        var address = parse(parts[0]);
        if (address == null) throw new IllegalArgumentException("'" + text + "' is not a network; write 10.0.0.0/8 or 2001:db8::/32");
        var length = address.getAddress().length * 8;
        var bits = parts.length == 1 ? length : Integer.parseInt(parts[1]);
        if (bits < 0 || bits > length) throw new IllegalArgumentException("'" + text + "' has more bits than its address");
        return new Network(address.getAddress(), bits);
    }

    /** Null if the connection has no address. */
    String of(HttpServletRequest request) {
        var client = parse(request.getRemoteAddr());
        var entries = String.join(",", Collections.list(request.getHeaders("X-Forwarded-For"))).split(",", -1);
        for (int index = entries.length - 1; index >= 0 && client != null && isTrusted(client); index--) {
            var address = parse(entries[index].strip());
            if (address == null) break;
            client = address;
        }
        return client == null ? null : client.getHostAddress();
    }

    private boolean isTrusted(InetAddress address) {
        return trusted.stream().anyMatch(network -> network.contains(address.getAddress()));
    }

    /** An address without zone, IPv4 in IPv6 as IPv4; null if the text is none. No name is ever looked up. */
    private static InetAddress parse(String text) {
        if (text == null) return null;
        var plain = text.indexOf('%') > 0 ? text.substring(0, text.indexOf('%')) : text;
        if (plain.length() > 45 || !(V4.matcher(plain).matches() || V6.matcher(plain).matches())) return null;
        try {
            return InetAddress.getByName(plain);
        } catch (UnknownHostException e) {
            return null;
        }
    }
}
