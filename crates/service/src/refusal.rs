//! Errors that all transports share: a status, a stable code and what to do.

use crate::Reply;
use crate::check_request::BodyError;
use crate::receipt_sealer::ReceiptRejection;
use crate::render::{ProblemDetails, write_problem};

/// An error with a fixed text, known before anything is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status; other transports map it to their own.
    pub status: u16,
    /// Stable name, for programs.
    pub code: &'static str,
    /// The kind of error.
    pub title: &'static str,
    /// What to do about it.
    pub detail: &'static str,
    /// A header field that belongs to it.
    pub field: Option<(&'static str, &'static str)>,
    /// The connection ends with this response.
    pub closes: bool,
}

impl ApiError {
    /// An error without header fields.
    pub const fn new(status: u16, code: &'static str, title: &'static str, detail: &'static str) -> ApiError {
        ApiError { status, code, title, detail, field: None, closes: false }
    }

    /// Fills the reply.
    pub fn write(&self, reply: &mut Reply) {
        let ApiError { status, code, title, detail, field, closes } = *self;
        write_problem(&ProblemDetails { status, code, title, detail, field: None }, reply);
        if let Some((name, value)) = field {
            reply.fields.push(name, value);
        }
        reply.close |= closes;
    }
}

/// A token is required and none that is known was sent.
pub const NO_TOKEN: ApiError = ApiError {
    field: Some(("WWW-Authenticate", "Bearer")),
    ..ApiError::new(
        401,
        "no_token",
        "Unauthorized",
        "Send a token that this server knows: Authorization: Bearer TOKEN.",
    )
};
/// The token does not cover the namespace.
pub const OTHER_NAMESPACE: ApiError =
    ApiError::new(403, "other_namespace", "Forbidden", "This token is not for that namespace.");
const UNKNOWN_RECEIPT: ApiError = ApiError::new(
    400,
    "unknown_receipt",
    "Bad request",
    "This server did not make that receipt for this, or it was changed.",
);
const FOREIGN_RECEIPT: ApiError = ApiError::new(
    409,
    "foreign_receipt",
    "Conflict",
    "Another process made that receipt, or this one before it was restarted: its buckets are not here.",
);
/// The receipt is too old to be settled.
pub const EXPIRED_RECEIPT: ApiError = ApiError::new(
    409,
    "expired_receipt",
    "Conflict",
    "The receipt is more than a day old: its estimate stays charged.",
);
/// A newer receipt of the same reservation exists, or it was settled.
pub const REPLACED_RECEIPT: ApiError = ApiError::new(
    409,
    "replaced_receipt",
    "Conflict",
    "The reservation was settled, or extended: use the receipt of the last extension.",
);
/// Amounts of a meter that the reservation does not have.
pub const METER_NOT_RESERVED: ApiError = ApiError::new(
    400,
    "meter_not_reserved",
    "Bad request",
    "Only meters that were reserved can be settled or extended: reserve 0 of a meter whose amount is not known yet.",
);
/// The store did not answer.
pub const STORE_UNAVAILABLE: ApiError = ApiError {
    field: Some(("Retry-After", "1")),
    ..ApiError::new(
        503,
        "store_unavailable",
        "Service unavailable",
        "The store did not answer; try again with the same receipt.",
    )
};
/// Another explanation is running.
pub const BUSY_EXPLAINING: ApiError = ApiError {
    field: Some(("Retry-After", "1")),
    ..ApiError::new(503, "busy_explaining", "Service unavailable", "Another explanation is being made; try again.")
};

impl From<ReceiptRejection> for ApiError {
    fn from(rejection: ReceiptRejection) -> ApiError {
        match rejection {
            ReceiptRejection::Unknown => UNKNOWN_RECEIPT,
            ReceiptRejection::Foreign => FOREIGN_RECEIPT,
        }
    }
}

/// Fills the reply with the error of a body that cannot be read.
pub fn write_body_error(error: &BodyError, reply: &mut Reply) {
    let field = Some(error.field.as_str()).filter(|field| !field.is_empty());
    let BodyError { code, detail, .. } = error;
    write_problem(&ProblemDetails { status: 400, code, title: "Bad request", detail, field }, reply);
}

/// Fills the reply with a small JSON object.
pub fn write_json(status: u16, json: &str, reply: &mut Reply) {
    reply.clear();
    reply.status = status;
    reply.fields.push("Content-Type", "application/json");
    reply.fields.push("Cache-Control", "no-store");
    reply.body.extend_from_slice(json.as_bytes());
}
