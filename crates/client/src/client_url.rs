//! Where a server is.

use http::Uri;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientUrl {
    pub(crate) grpc: bool,
    pub(crate) tls: bool,
    pub(crate) target: ConnectTarget,
    /// What goes before the path of a call: `http://host:port`, and a prefix if there is one.
    pub(crate) base: String,
}

/// What to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectTarget {
    Tcp { host: String, port: u16 },
    Unix(String),
}

impl ClientUrl {
    pub(crate) fn parse(text: &str) -> Result<ClientUrl, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let base = "http://localhost".to_owned();
            return match path.starts_with('/') {
                true => Ok(ClientUrl { grpc: false, tls: false, target: ConnectTarget::Unix(path.to_owned()), base }),
                false => Err(format!("`{text}` has no absolute path: write unix:/run/tollgate.sock")),
            };
        }
        let uri: Uri = text.parse().map_err(|_| format!("`{text}` is no URL: write http://127.0.0.1:8080"))?;
        let (grpc, tls) = match uri.scheme_str() {
            Some("http") => (false, false),
            Some("https") => (false, true),
            Some("grpc") => (true, false),
            Some("grpcs") => (true, true),
            _ => return Err(format!("`{text}`: write http://, https://, grpc://, grpcs:// or unix:/path")),
        };
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        if authority.contains('@') {
            return Err("a URL with a password: give the token by itself".to_owned());
        }
        if uri.query().is_some() {
            return Err(format!("`{text}` has a query: write only where the server is"));
        }
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(match (grpc, tls) {
            (false, false) => 8080,
            (false, true) => 443,
            (true, _) => 8081,
        });
        let scheme = if tls { "https" } else { "http" };
        let base = format!("{scheme}://{authority}{}", uri.path().trim_end_matches('/'));
        Ok(ClientUrl { grpc, tls, target: ConnectTarget::Tcp { host, port }, base })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (bool, bool, String, String) {
        let ClientUrl { grpc, tls, target, base } = ClientUrl::parse(text).unwrap();
        let target = match target {
            ConnectTarget::Tcp { host, port } => format!("{host} {port}"),
            ConnectTarget::Unix(path) => path,
        };
        (grpc, tls, target, base)
    }

    #[test]
    fn servers_are_found_by_their_urls() {
        let cases = [
            ("http://127.0.0.1:9", (false, false, "127.0.0.1 9", "http://127.0.0.1:9")),
            (
                "https://limits.example/tollgate/",
                (false, true, "limits.example 443", "https://limits.example/tollgate"),
            ),
            ("grpc://[::1]:8081", (true, false, "::1 8081", "http://[::1]:8081")),
            ("unix:/run/t.sock", (false, false, "/run/t.sock", "http://localhost")),
        ];
        for (text, (grpc, tls, target, base)) in cases {
            assert_eq!(read(text), (grpc, tls, target.to_owned(), base.to_owned()), "{text}");
        }
        for text in ["", "127.0.0.1:8080", "ftp://a", "http://a@b/", "http://a/?b", "unix:run", "http://a b"] {
            assert!(ClientUrl::parse(text).is_err(), "{text}");
        }
    }
}
