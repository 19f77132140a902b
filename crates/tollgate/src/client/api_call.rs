//! A call of an API, built before it is sent.

use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{HeaderName, IF_MATCH};

use crate::url_encoding::url_component;

/// Default timeout of a call, from the name lookup to the last byte of the response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Default maximum length of a response. The longest of the data API, a batch of a thousand, is far shorter.
const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// A call: method, path, headers, body, and limits for its response. Cheap to clone, for retries.
#[derive(Clone, Debug)]
pub struct ApiCall {
    pub(super) method: Method,
    /// Path and query, percent-encoded.
    pub(super) path: String,
    pub(super) headers: Vec<(HeaderName, String)>,
    pub(super) body: Option<CallBody>,
    pub(super) timeout: Duration,
    pub(super) response_bytes_max: usize,
}

/// The body of a call.
#[derive(Clone, Debug)]
pub(super) struct CallBody {
    pub(super) media: &'static str,
    pub(super) bytes: Bytes,
}

impl ApiCall {
    /// A call of a path, given as segments: `["v1", "rules", "a/b"]` is `/v1/rules/a%2Fb`.
    pub fn new(method: Method, segments: &[&str]) -> ApiCall {
        let path = segments.iter().map(|segment| format!("/{}", url_component(segment))).collect();
        ApiCall {
            method,
            path,
            headers: Vec::new(),
            body: None,
            timeout: TIMEOUT,
            response_bytes_max: RESPONSE_BYTES_MAX,
        }
    }

    /// Adds `name=value` to the query.
    pub fn query(mut self, name: &str, value: &str) -> ApiCall {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        self.path.push_str(&format!("{separator}{}={}", url_component(name), url_component(value)));
        self
    }

    /// Adds a parameter, if it has a value.
    pub fn query_some(self, name: &str, value: Option<&str>) -> ApiCall {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Adds those parameters that have a value.
    pub fn query_each<'a>(self, pairs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> ApiCall {
        pairs.into_iter().fold(self, |call, (name, value)| call.query_some(name, value))
    }

    /// Executes the call only if the resource still has this ETag.
    pub fn if_match(mut self, etag: &str) -> ApiCall {
        self.headers.push((IF_MATCH, etag.to_owned()));
        self
    }

    /// The server executes calls with the same key once.
    pub fn idempotency_key(mut self, key: &str) -> ApiCall {
        self.headers.push((HeaderName::from_static("idempotency-key"), key.to_owned()));
        self
    }

    /// Sets a JSON body.
    pub fn json(self, text: String) -> ApiCall {
        self.body("application/json", text)
    }

    /// Sets a JSON merge patch as the body.
    pub fn merge_patch(self, text: String) -> ApiCall {
        self.body("application/merge-patch+json", text)
    }

    /// Sets a YAML body.
    pub fn yaml(self, text: String) -> ApiCall {
        self.body("application/yaml", text)
    }

    /// Sets the timeout for the whole response.
    pub fn timeout(mut self, timeout: Duration) -> ApiCall {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum length of the response.
    pub fn response_bytes_max(mut self, most: usize) -> ApiCall {
        self.response_bytes_max = most;
        self
    }

    fn body(mut self, media: &'static str, text: String) -> ApiCall {
        self.body = Some(CallBody { media, bytes: text.into() });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_changes_the_structure_of_the_url() {
        let call = ApiCall::new(Method::GET, &["v1", "clients", "key:a/../b?c#d%é"]);
        let call = call.query("tier", "free&limit=1").query_some("prefix", Some("a b")).query_some("org", None);
        assert_eq!(call.path, "/v1/clients/key%3Aa%2F..%2Fb%3Fc%23d%25%C3%A9?tier=free%26limit%3D1&prefix=a%20b");
    }
}
