//! What kind of field a caller's is, by its name: whether it is the caller's to write.

/// The kinds of fields of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldClass {
    /// It is passed on.
    Own,
    /// It belongs to one connection (RFC 9110, 7.6.1), whatever `Connection` names.
    Connection,
    /// Some servers take another method or path from it than the one that was decided about; of `Proxy`, CGI makes the
    /// variable by which programs choose their own proxy.
    Override,
    /// The gateway writes it: who is asking, by which host and scheme.
    Hops,
    /// Tells of one hop, which is not that of the gateway.
    OtherHop,
    /// What proxies say of their clients: address, certificate, user. Believed of a trusted peer, like the list of hops.
    Proxy,
}

/// Families of fields in which proxies and platforms name a client, whatever follows.
const FAMILIES: [&str; 5] = ["x-forwarded-", "x-remote-", "x-appengine-", "x-auth-request-", "x-webauth-"];

impl FieldClass {
    /// The class of a field, whose name is in lower case.
    pub(crate) fn of(name: &str) -> FieldClass {
        use FieldClass::{Connection, Hops, Override, Own, Proxy};
        // By the first letter: that rules out most fields.
        match name.as_bytes().first() {
            Some(b'x') => FieldClass::of_extension(name),
            Some(b'c') if name == "connection" => Connection,
            Some(b'c') if matches!(name, "cf-connecting-ip" | "cf-connecting-ipv6" | "client-ip") => Proxy,
            Some(b'd') if name == "do-connecting-ip" => Proxy,
            Some(b'f') if name == "forwarded" => Hops,
            Some(b'f') if matches!(name, "fastly-client-ip" | "fly-client-ip") => Proxy,
            Some(b'h') if name == "http2-settings" => Connection,
            Some(b'k') if name == "keep-alive" => Connection,
            Some(b'p') if name == "proxy" => Override,
            Some(b'p') if matches!(name, "proxy-connection" | "proxy-authenticate" | "proxy-authorization") => {
                Connection
            }
            // The variables REMOTE_USER and its like, as proxies that authenticate send them.
            Some(b'r') if name.starts_with("remote-") => Proxy,
            Some(b't') if matches!(name, "te" | "transfer-encoding") => Connection,
            Some(b't') if name == "true-client-ip" => Proxy,
            Some(b'u') if name == "upgrade" => Connection,
            _ => Own,
        }
    }

    fn of_extension(name: &str) -> FieldClass {
        use FieldClass::{Hops, OtherHop, Override, Own, Proxy};
        match name {
            "x-forwarded-for" | "x-forwarded-host" | "x-forwarded-proto" => Hops,
            "x-forwarded-port" | "x-forwarded-prefix" | "x-forwarded-server" | "x-real-ip" => OtherHop,
            "x-http-method" | "x-http-method-override" | "x-method-override" | "x-original-url" | "x-rewrite-url" => {
                Override
            }
            "x-client-ip" | "x-cluster-client-ip" | "x-envoy-external-address" | "x-forwarded" => Proxy,
            "x-original-forwarded-for" | "x-proxyuser-ip" | "x-azure-clientip" | "x-azure-socketip" => Proxy,
            "x-host" | "x-original-host" => Proxy,
            _ if FAMILIES.iter().any(|family| name.starts_with(family)) => Proxy,
            _ => Own,
        }
    }

    /// The class of what a server that takes underscores for hyphens sees, as CGI, WSGI and PHP do.
    pub(crate) fn of_any_spelling(name: &str) -> FieldClass {
        match name.contains('_') {
            true => FieldClass::of(&name.replace('_', "-")),
            false => FieldClass::of(name),
        }
    }
}

/// True for fields that a server may merge from the trailers into the header without taking the request for another one
/// (RFC 9110, 6.5.1): nothing of framing, routing, identity, conditions or content.
pub(crate) fn may_be_trailer(name: &str) -> bool {
    let hyphenated = name.replace('_', "-");
    let name = hyphenated.as_str();
    FieldClass::of(name) == FieldClass::Own
        && !["content-", "if-", "accept", "sec-", "trace"].iter().any(|start| name.starts_with(start))
        && !matches!(name, "authorization" | "cache-control" | "cookie" | "date" | "expect" | "host" | "max-forwards")
        && !matches!(name, "origin" | "pragma" | "range" | "referer" | "trailer" | "user-agent" | "x-api-key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_not_the_callers_are_known_in_every_spelling() {
        for (name, class) in [
            ("x-own", FieldClass::Own),
            ("cookie", FieldClass::Own),
            ("trailer", FieldClass::Own),
            ("connection", FieldClass::Connection),
            ("te", FieldClass::Connection),
            ("proxy", FieldClass::Override),
            ("x_http_method_override", FieldClass::Override),
            ("x_forwarded_for", FieldClass::Hops),
            ("x-real_ip", FieldClass::OtherHop),
            ("x-forwarded-client-cert", FieldClass::Proxy),
            ("true_client_ip", FieldClass::Proxy),
            ("remote-user", FieldClass::Proxy),
            ("x-remote_user", FieldClass::Proxy),
            ("fly-client-ip", FieldClass::Proxy),
            ("do-connecting-ip", FieldClass::Proxy),
            ("x-azure-clientip", FieldClass::Proxy),
            ("x-appengine-user-ip", FieldClass::Proxy),
            ("x-original-host", FieldClass::Proxy),
            ("x_host", FieldClass::Proxy),
            ("x-auth-request-email", FieldClass::Proxy),
            ("remotely", FieldClass::Own),
            ("x-hosts", FieldClass::Own),
            ("", FieldClass::Own),
        ] {
            assert_eq!(FieldClass::of_any_spelling(name), class, "{name}");
        }
    }

    #[test]
    fn a_trailer_changes_nothing_of_its_request() {
        for name in ["x-sum", "digest", "server-timing", "grpc-status"] {
            assert!(may_be_trailer(name), "{name}");
        }
        for name in ["host", "content-length", "content_type", "x_api_key", "if-match", "x-forwarded-for", "upgrade"] {
            assert!(!may_be_trailer(name), "{name}");
        }
    }
}
