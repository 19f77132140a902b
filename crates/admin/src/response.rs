//! What is answered when all went well.

use std::borrow::Cow;

use serde_json::Value;

use tollgate_service::Reply;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminResponse {
    /// The status.
    pub status: u16,
    /// Media type and text; nothing if none.
    pub body: Option<(&'static str, Cow<'static, str>)>,
    /// The version of what is shown.
    pub version: Option<i64>,
    /// Where what was made can be found.
    pub location: Option<String>,
}

impl AdminResponse {
    /// JSON.
    pub fn json(value: &Value) -> AdminResponse {
        AdminResponse::text("application/json", value.to_string())
    }

    /// Text of a media type.
    pub fn text(media: &'static str, text: impl Into<Cow<'static, str>>) -> AdminResponse {
        AdminResponse { status: 200, body: Some((media, text.into())), version: None, location: None }
    }

    /// Nothing but a status.
    pub const fn nothing(status: u16) -> AdminResponse {
        AdminResponse { status, body: None, version: None, location: None }
    }

    /// The same with another status.
    #[must_use]
    pub fn status(self, status: u16) -> AdminResponse {
        AdminResponse { status, ..self }
    }

    /// The same with a version.
    #[must_use]
    pub fn version(self, version: i64) -> AdminResponse {
        AdminResponse { version: Some(version), ..self }
    }

    /// The same for something that was just made, to be found at `location`.
    #[must_use]
    pub fn created(self, location: String) -> AdminResponse {
        AdminResponse { status: 201, location: Some(location), ..self }
    }

    /// What is said to who has it already.
    #[must_use]
    pub fn unchanged(self) -> AdminResponse {
        AdminResponse { status: 304, body: None, ..self }
    }

    /// Fills the reply with it.
    pub fn write_to(&self, reply: &mut Reply) {
        let AdminResponse { status, body, version, location } = self;
        reply.status = *status;
        if let Some((media, text)) = body {
            reply.fields.push("Content-Type", media);
            reply.body.extend_from_slice(text.as_bytes());
        }
        if let Some(version) = version {
            reply.fields.push("ETag", &etag(*version));
        }
        if let Some(location) = location {
            reply.fields.push("Location", location);
        }
    }
}

/// A version as an entity tag.
pub fn etag(version: i64) -> String {
    format!("\"{version}\"")
}
