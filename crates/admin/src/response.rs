//! Successful responses.

use std::borrow::Cow;

use serde_json::Value;

use tollgate_service::Reply;

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminResponse {
    /// The status.
    pub status: u16,
    /// Media type and text.
    pub body: Option<(&'static str, Cow<'static, str>)>,
    /// The version of the record.
    pub version: Option<i64>,
    /// The path of the new record.
    pub location: Option<String>,
    /// Where the next page begins, for bodies that cannot say so.
    pub next_cursor: Option<String>,
}

impl AdminResponse {
    /// JSON.
    pub fn json(value: &Value) -> AdminResponse {
        AdminResponse::text("application/json", value.to_string())
    }

    /// Text of a media type.
    pub fn text(media: &'static str, text: impl Into<Cow<'static, str>>) -> AdminResponse {
        AdminResponse { body: Some((media, text.into())), ..AdminResponse::nothing(200) }
    }

    /// A status without a body.
    pub const fn nothing(status: u16) -> AdminResponse {
        AdminResponse { status, body: None, version: None, location: None, next_cursor: None }
    }

    /// With another status.
    #[must_use]
    pub fn status(self, status: u16) -> AdminResponse {
        AdminResponse { status, ..self }
    }

    /// With a version.
    #[must_use]
    pub fn version(self, version: i64) -> AdminResponse {
        AdminResponse { version: Some(version), ..self }
    }

    /// 201 Created, with the path of the new record.
    #[must_use]
    pub fn created(self, location: String) -> AdminResponse {
        AdminResponse { status: 201, location: Some(location), ..self }
    }

    /// With the start of the next page.
    #[must_use]
    pub fn next_cursor(self, next_cursor: Option<String>) -> AdminResponse {
        AdminResponse { next_cursor, ..self }
    }

    /// 304 Not Modified.
    #[must_use]
    pub fn unchanged(self) -> AdminResponse {
        AdminResponse { status: 304, body: None, ..self }
    }

    /// Writes it to the reply.
    pub fn write_to(&self, reply: &mut Reply) {
        let AdminResponse { status, body, version, location, next_cursor } = self;
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
        if let Some(cursor) = next_cursor {
            reply.fields.push("Next-Cursor", cursor);
        }
    }
}

/// A version as an entity tag.
pub fn etag(version: i64) -> String {
    format!("\"{version}\"")
}
