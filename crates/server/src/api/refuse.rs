//! Calls that are refused for what they are, not for who asks: each with a status, a stable code and what to do.

use crate::Reply;
use crate::answer::{Problem, problem};
use crate::http::Fault;

use super::read;
use super::seal::Rejected;

/// A refusal that is known before anything is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    title: &'static str,
    pub(crate) detail: &'static str,
    field: Option<(&'static str, &'static str)>,
    closes: bool,
}

const fn refused(status: u16, code: &'static str, title: &'static str, detail: &'static str) -> Refused {
    Refused { status, code, title, detail, field: None, closes: false }
}

pub(super) const NO_SUCH_PATH: Refused = refused(
    404,
    "no_such_path",
    "Not found",
    "There is no such path here. POST /v1/check decides a request; /metrics is on the admin port.",
);
pub(super) const NO_SUCH_METRICS: Refused =
    refused(404, "no_such_path", "Not found", "There is no such path here. /metrics, /stats and /rlconfig are.");
pub(super) const ONLY_POST: Refused = Refused {
    field: Some(("Allow", "POST")),
    ..refused(405, "method_not_allowed", "Method not allowed", "Use POST: a check changes what is left.")
};
pub(super) const ONLY_GET: Refused = Refused {
    field: Some(("Allow", "GET, HEAD")),
    ..refused(405, "method_not_allowed", "Method not allowed", "Use GET.")
};
pub(super) const NO_TOKEN: Refused = Refused {
    field: Some(("WWW-Authenticate", "Bearer")),
    ..refused(401, "no_token", "Unauthorized", "Send a token that this server knows: Authorization: Bearer TOKEN.")
};
pub(super) const OTHER_NAMESPACE: Refused =
    refused(403, "other_namespace", "Forbidden", "This token is not for that namespace.");
pub(super) const FROM_A_PAGE: Refused = refused(
    403,
    "from_a_page",
    "Forbidden",
    "Web pages may not spend limits: let your own server ask, or configure tokens.",
);
pub(super) const ENCODED: Refused =
    refused(415, "encoded_body", "Unsupported media type", "Send the body as it is, without Content-Encoding.");
pub(super) const NOT_JSON: Refused =
    refused(415, "not_json_media_type", "Unsupported media type", "Send JSON, with Content-Type: application/json.");
pub(super) const UNKNOWN_PARAMETER: Refused =
    refused(400, "unknown_parameter", "Bad request", "The only parameter is status: ?status=429 answers denials so.");
pub(super) const BAD_TIMEOUT: Refused = refused(
    400,
    "bad_timeout",
    "Bad request",
    "Request-Timeout is a whole number with a unit, such as 50ms or 2s: how long you wait for the answer.",
);
const UNKNOWN_RECEIPT: Refused = refused(
    400,
    "unknown_receipt",
    "Bad request",
    "This server did not make that receipt for this, or it was changed.",
);
const FOREIGN_RECEIPT: Refused = refused(
    409,
    "foreign_receipt",
    "Conflict",
    "Another process made that receipt, or this one before it was restarted: its buckets are not here.",
);
pub(super) const EXPIRED_RECEIPT: Refused =
    refused(409, "expired_receipt", "Conflict", "The receipt is more than a day old: its estimate stays charged.");
pub(super) const STORE_AWAY: Refused = Refused {
    field: Some(("Retry-After", "1")),
    ..refused(
        503,
        "store_unavailable",
        "Service unavailable",
        "The store did not answer; try again with the same receipt.",
    )
};

pub(crate) const BUSY_EXPLAINING: Refused = Refused {
    field: Some(("Retry-After", "1")),
    ..refused(503, "busy_explaining", "Service unavailable", "Another explanation is being made; try again.")
};

/// A receipt that is not taken.
pub(super) fn of_receipt(rejected: Rejected) -> Refused {
    match rejected {
        Rejected::Unknown => UNKNOWN_RECEIPT,
        Rejected::Foreign => FOREIGN_RECEIPT,
    }
}

/// What could not be read as HTTP.
pub(super) fn of_fault(fault: Fault) -> Refused {
    let refused = match fault {
        Fault::Malformed(detail) => refused(400, "malformed_request", "Bad request", detail),
        Fault::Version => refused(505, "http_version", "HTTP version not supported", "Use HTTP/1.1 or HTTP/2."),
        Fault::TargetTooLong => refused(414, "target_too_long", "URI too long", "Shorten the path."),
        Fault::HeadTooLarge => {
            refused(431, "head_too_large", "Request header fields too large", "Send fewer or shorter header fields.")
        }
        Fault::Expectation => refused(417, "expectation", "Expectation failed", "Only 100-continue can be expected."),
        Fault::BodyTooLarge => refused(
            413,
            "body_too_large",
            "Content too large",
            "Send less at once: the settings max_body and max_batch_body say how much.",
        ),
        Fault::TooSlow => refused(408, "too_slow", "Request timeout", "The body did not arrive in time."),
        Fault::NoRoom => Refused {
            field: Some(("Retry-After", "1")),
            ..refused(503, "no_room", "Service unavailable", "Too many bodies are on their way; try again.")
        },
        Fault::Panicked => {
            refused(500, "internal_error", "Internal server error", "A bug in Tollgate; its log says more.")
        }
    };
    Refused { closes: true, ..refused }
}

/// Fills the reply for a path of the admin API, with where that is.
pub(super) fn refuse_elsewhere(path: &str, admin: Option<&str>, reply: &mut Reply) {
    let path = if path.starts_with("/v1/") { path.to_owned() } else { format!("/v1{path}") };
    let detail = match admin {
        Some(admin) => format!("This is the data API. The admin API has this path: {admin}{path}."),
        None => format!("This is the data API. The admin API would have {path}; start the server with --admin ADDR."),
    };
    problem(&Problem { status: 404, code: "no_such_path", title: "Not found", detail: &detail, field: None }, reply);
}

/// Fills the reply with a refusal.
pub(super) fn refuse(refused: &Refused, reply: &mut Reply) {
    let Refused { status, code, title, detail, field, closes } = *refused;
    problem(&Problem { status, code, title, detail, field: None }, reply);
    if let Some((name, value)) = field {
        reply.fields.push(name, value);
    }
    reply.close |= closes;
}

/// Fills the reply with what is wrong with a body.
pub(super) fn refuse_body(fault: &read::Fault, reply: &mut Reply) {
    let field = Some(fault.field.as_str()).filter(|field| !field.is_empty());
    problem(&Problem { status: 400, code: fault.code, title: "Bad request", detail: &fault.detail, field }, reply);
}

/// Fills the reply with a small JSON object.
pub(super) fn say(status: u16, json: &str, reply: &mut Reply) {
    reply.clear();
    reply.status = status;
    reply.fields.push("Content-Type", "application/json");
    reply.fields.push("Cache-Control", "no-store");
    reply.body.extend_from_slice(json.as_bytes());
}
