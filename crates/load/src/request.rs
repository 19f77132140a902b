//! A request, before it is framed for its protocol.

use crate::error::LoadError;

/// A request with key placeholders: `{key}` is the key of the request, the same at every occurrence; `{keys}` is a new
/// key at every occurrence, for batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl LoadRequest {
    /// A request without headers and body.
    pub fn new(method: &str, path: &str) -> LoadRequest {
        LoadRequest { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    /// A POST; its body is JSON unless a header says otherwise.
    pub fn post(path: &str) -> LoadRequest {
        LoadRequest::new("POST", path)
    }

    /// A GET.
    pub fn get(path: &str) -> LoadRequest {
        LoadRequest::new("GET", path)
    }

    /// A RESP command: `CL.THROTTLE {key} 15 30 60`. Spaces separate its arguments.
    pub fn command(line: &str) -> LoadRequest {
        LoadRequest::post("/").body(line)
    }

    /// Sets the body: text, or a [`ProtobufMessage`](crate::ProtobufMessage) for gRPC.
    pub fn body(self, body: impl AsRef<[u8]>) -> LoadRequest {
        LoadRequest { body: body.as_ref().to_vec(), ..self }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> LoadRequest {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Rejects what cannot be sent as given.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let is_token = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        };
        if !is_token(&self.method) || matches!(self.method.as_str(), "HEAD" | "CONNECT") {
            return Err(LoadError::invalid(format!("the method {:?} cannot be measured", self.method)));
        }
        if !self.path.starts_with('/') || !self.path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(LoadError::invalid(format!("the path {:?} is not one: write it like /v1/check", self.path)));
        }
        for (name, value) in &self.headers {
            let is_set_here = ["content-length", "transfer-encoding", "connection"];
            if !is_token(name) || is_set_here.iter().any(|taken| name.eq_ignore_ascii_case(taken)) {
                return Err(LoadError::invalid(format!("the header {name:?} cannot be sent")));
            }
            if value.chars().any(char::is_control) {
                return Err(LoadError::invalid(format!("the value of the header {name} holds a control character")));
            }
        }
        Ok(())
    }
}
