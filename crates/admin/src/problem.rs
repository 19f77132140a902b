//! Error responses: problem details (RFC 9457) with every fault and the path of its field.
//!
//! Only this module maps errors of the control plane to statuses.

use serde_json::{Map, Value, json};
use tollgate_control::{Error, FieldError};
use tollgate_rules::{self as rules, Report};

use tollgate_service::Reply;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminProblem {
    /// The status.
    pub status: u16,
    /// Stable name of the mistake, for machines.
    pub code: &'static str,
    /// What is wrong, and what to do.
    pub detail: String,
    /// Every fault in the request.
    pub faults: Vec<FieldError>,
    /// Line and column of each fault in a rules file.
    pub positions: Vec<(u32, u32)>,
    /// Header fields of the response.
    pub headers: Vec<(&'static str, String)>,
}

/// Rewrites a problem of the full form for a caller that sent another form.
pub type MapProblem = fn(AdminProblem) -> AdminProblem;

/// Codes of faults in the shape of a body: it violates the schema (400). All other faults are in its values (422).
const SHAPE: &[&str] = &["unknown-field", "wrong-type", "missing-field", "duplicate-field", "blank", "not-text"];

impl AdminProblem {
    /// A problem.
    pub fn new(status: u16, code: &'static str, detail: impl Into<String>) -> AdminProblem {
        AdminProblem {
            status,
            code,
            detail: detail.into(),
            faults: Vec::new(),
            positions: Vec::new(),
            headers: Vec::new(),
        }
    }

    /// Adds a header field.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> AdminProblem {
        self.headers.push((name, value.into()));
        self
    }

    /// A body with these faults.
    pub fn of_faults(faults: Vec<FieldError>) -> AdminProblem {
        let is_shape = faults.iter().any(|fault| SHAPE.contains(&fault.code.as_str()));
        let detail = match faults.as_slice() {
            [] => "The body cannot be used.".to_owned(),
            [fault] => sentence(fault),
            [fault, rest @ ..] => format!("{} And {} more.", sentence(fault), rest.len()),
        };
        let (status, code) = if is_shape { (400, "malformed_body") } else { (422, "invalid_body") };
        AdminProblem { faults, ..AdminProblem::new(status, code, detail) }
    }

    /// A body with one fault.
    pub fn of_fault(field: &str, code: &str, message: impl Into<String>, help: &str) -> AdminProblem {
        AdminProblem::of_faults(vec![fault(field, code, message, help)])
    }

    /// A rules file with these problems.
    pub fn of_report(report: Report) -> AdminProblem {
        let positions: Vec<(u32, u32)> = report.problems.iter().map(|problem| (problem.line, problem.column)).collect();
        let faults = report.problems.into_iter().map(|problem| {
            let rules::Problem { code, field, message, help, .. } = problem;
            FieldError { field, code: code.to_owned(), message, help }
        });
        let faults: Vec<FieldError> = faults.collect();
        let AdminProblem { detail, .. } = AdminProblem::of_faults(faults.clone());
        let detail = match positions.first() {
            Some((line, column)) => format!("Line {line}, column {column}: {detail}"),
            None => detail,
        };
        AdminProblem { faults, positions, ..AdminProblem::new(422, "invalid_rules_file", detail) }
    }

    /// 404.
    pub fn not_found(what: &str) -> AdminProblem {
        AdminProblem::new(404, "not_found", format!("There is no {what}."))
    }

    /// The title of the status.
    const fn title(&self) -> &'static str {
        match self.status {
            400 => "Bad request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not found",
            405 => "Method not allowed",
            409 => "Conflict",
            412 => "Precondition failed",
            413 => "Content too large",
            415 => "Unsupported media type",
            422 => "Unprocessable content",
            428 => "Precondition required",
            429 => "Too many requests",
            503 => "Service unavailable",
            507 => "Insufficient storage",
            _ => "Internal server error",
        }
    }

    fn errors(&self) -> Value {
        let positions = self.positions.iter().map(Some).chain(std::iter::repeat(None));
        self.faults.iter().zip(positions).map(|(fault, position)| shown(fault, position)).collect()
    }

    /// Writes it to the reply.
    pub fn write_to(&self, reply: &mut Reply) {
        let mut body = Map::new();
        body.insert("type".to_owned(), "about:blank".into());
        body.insert("title".to_owned(), self.title().into());
        body.insert("status".to_owned(), self.status.into());
        body.insert("detail".to_owned(), self.detail.as_str().into());
        body.insert("code".to_owned(), self.code.into());
        if let [fault] = self.faults.as_slice() {
            body.insert("field".to_owned(), fault.field.as_str().into());
        }
        if !self.faults.is_empty() {
            body.insert("errors".to_owned(), self.errors());
        }
        reply.status = self.status;
        reply.fields.push("Content-Type", "application/problem+json");
        for (name, value) in &self.headers {
            reply.fields.push(name, value);
        }
        reply.body.extend_from_slice(Value::Object(body).to_string().as_bytes());
    }
}

/// A fault of the API itself.
pub fn fault(field: &str, code: &str, message: impl Into<String>, help: &str) -> FieldError {
    let help = if help.is_empty() { None } else { Some(help.to_owned()) };
    FieldError { field: field.to_owned(), code: code.to_owned(), message: message.into(), help }
}

fn shown(fault: &FieldError, position: Option<&(u32, u32)>) -> Value {
    let FieldError { field, code, message, help } = fault;
    match position {
        None => json!({ "field": field, "code": code, "message": message, "help": help }),
        Some((line, column)) => {
            json!({ "field": field, "code": code, "message": message, "help": help, "line": line, "column": column })
        }
    }
}

fn sentence(fault: &FieldError) -> String {
    match &fault.help {
        Some(help) => format!("{}: {help}.", fault.message),
        None => format!("{}.", fault.message),
    }
}

impl From<Error> for AdminProblem {
    fn from(error: Error) -> AdminProblem {
        let text = format!("{error}.");
        let soon = |problem: AdminProblem| problem.with("Retry-After", "1");
        match error {
            Error::NotFound(what) => AdminProblem::not_found(&what),
            Error::Conflict(_) => AdminProblem::new(409, "conflict", text),
            Error::Stale { .. } => {
                AdminProblem::new(412, "stale", format!("{text} Read it again, and send what it says as If-Match."))
            }
            Error::Invalid(faults) => AdminProblem::of_faults(faults),
            Error::KeyReused => AdminProblem::new(422, "idempotency_key_reused", text),
            Error::Unavailable(_) => soon(AdminProblem::new(
                503,
                "database_away",
                "The database does not answer; try again. Decisions go on as before.",
            )),
            Error::Full(_) => {
                AdminProblem::new(507, "database_full", "There is no room left in the database. Nothing was changed.")
            }
            Error::Schema(what) => AdminProblem::new(503, "database_schema", what),
            Error::Unexpected(what) => {
                tracing::error!(what, "unexpected database error");
                AdminProblem::new(500, "internal_error", "Unexpected database error; the log has the details.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_the_control_plane_has_its_status() {
        let cases = [
            (Error::NotFound("rule `a`".to_owned()), 404, "not_found"),
            (Error::Conflict("there is a rule `a`".to_owned()), 409, "conflict"),
            (Error::Stale { what: "rule `a`".to_owned(), version: Some(3) }, 412, "stale"),
            (Error::Invalid(vec![fault("limit", "out-of-range", "too much", "")]), 422, "invalid_body"),
            (Error::Invalid(vec![fault("limt", "unknown-field", "what", "")]), 400, "malformed_body"),
            (Error::KeyReused, 422, "idempotency_key_reused"),
            (Error::Unavailable("tcp".to_owned()), 503, "database_away"),
            (Error::Full("disk".to_owned()), 507, "database_full"),
            (Error::Schema("run tollgate db migrate".to_owned()), 503, "database_schema"),
            (Error::Unexpected("column \"secret\"".to_owned()), 500, "internal_error"),
        ];
        for (error, status, code) in cases {
            let problem = AdminProblem::from(error.clone());
            assert_eq!((problem.status, problem.code), (status, code), "{error:?}");
            let mut reply = Reply::default();
            problem.write_to(&mut reply);
            let body: Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!((body["status"].as_u64(), body["code"].as_str()), (Some(status.into()), Some(code)));
            assert!(!body["detail"].as_str().unwrap().contains("secret"), "{body}");
        }
    }
}
