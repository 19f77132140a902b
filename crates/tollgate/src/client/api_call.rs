//! One call of an API, put together before it is sent.

use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{HeaderName, IF_MATCH};

use crate::url_encoding::url_component;

/// How long a call may take, unless it says otherwise: from looking up the name to the last byte of the answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer that is read, unless a call says otherwise. The largest to callers, a batch of a thousand, is far shorter.
const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// What to send, and how long to wait for what comes back. Cheap to clone: one that broke is sent again as it was.
#[derive(Clone, Debug)]
pub struct ApiCall {
    pub(super) method: Method,
    /// Path and query, escaped.
    pub(super) path: String,
    pub(super) headers: Vec<(HeaderName, String)>,
    pub(super) body: Option<CallBody>,
    pub(super) timeout: Duration,
    pub(super) response_bytes_max: usize,
}

/// What is sent along.
#[derive(Clone, Debug)]
pub(super) struct CallBody {
    pub(super) media: &'static str,
    pub(super) bytes: Bytes,
}

impl ApiCall {
    /// A call of a path, given by its segments: `["v1", "rules", "a/b"]` is `/v1/rules/a%2Fb`.
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

    /// The same, if there is a value.
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

    /// Only if the thing is still what it was.
    pub fn if_match(mut self, etag: &str) -> ApiCall {
        self.headers.push((IF_MATCH, etag.to_owned()));
        self
    }

    /// However often it arrives, it is done once.
    pub fn idempotency_key(mut self, key: &str) -> ApiCall {
        self.headers.push((HeaderName::from_static("idempotency-key"), key.to_owned()));
        self
    }

    /// With JSON.
    pub fn json(self, text: String) -> ApiCall {
        self.body("application/json", text)
    }

    /// With a JSON merge patch.
    pub fn merge_patch(self, text: String) -> ApiCall {
        self.body("application/merge-patch+json", text)
    }

    /// With YAML.
    pub fn yaml(self, text: String) -> ApiCall {
        self.body("application/yaml", text)
    }

    /// Waits so long for all of the answer.
    pub fn timeout(mut self, timeout: Duration) -> ApiCall {
        self.timeout = timeout;
        self
    }

    /// Reads answers of up to so many bytes.
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
    fn nothing_in_a_value_becomes_a_part_of_the_address() {
        let call = ApiCall::new(Method::GET, &["v1", "clients", "key:a/../b?c#d%é"]);
        let call = call.query("tier", "free&limit=1").query_some("prefix", Some("a b")).query_some("org", None);
        assert_eq!(call.path, "/v1/clients/key%3Aa%2F..%2Fb%3Fc%23d%25%C3%A9?tier=free%26limit%3D1&prefix=a%20b");
    }
}
