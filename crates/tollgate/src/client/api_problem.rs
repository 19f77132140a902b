//! Problem documents of a server.

use std::fmt;

use hyper::StatusCode;
use serde_json::Value;

use crate::exit::Exit;
use tollgate_terminal::{Palette, visible};

/// A problem document (RFC 9457).
#[derive(Debug)]
pub struct ApiProblem {
    /// The server.
    pub from: String,
    /// The status.
    pub status: StatusCode,
    /// The stable code of the problem.
    pub code: String,
    detail: String,
    wrong: Vec<FieldProblem>,
    /// Advice of the command line.
    advice: Option<String>,
}

/// An invalid field.
#[derive(Debug)]
struct FieldProblem {
    field: String,
    message: String,
    help: Option<String>,
}

impl ApiProblem {
    /// Parses a problem document.
    pub fn read(from: &str, status: StatusCode, problem: &Value) -> ApiProblem {
        let member = |name: &str| text(problem, name);
        let detail = member("detail").or_else(|| member("title")).unwrap_or_else(|| "no reason given".to_owned());
        let list = problem.get("errors").and_then(Value::as_array).into_iter().flatten();
        let mut wrong: Vec<FieldProblem> = list.filter_map(FieldProblem::read).collect();
        if let (Some(field), true) = (member("field"), wrong.is_empty()) {
            wrong.push(FieldProblem { field, message: detail.clone(), help: member("help") });
        }
        let code = member("code").unwrap_or_else(|| "?".to_owned());
        ApiProblem { from: from.to_owned(), status, code, detail, wrong, advice: None }
    }

    /// Adds advice that the server cannot give.
    pub fn with_advice(mut self, advice: impl Into<String>) -> ApiProblem {
        self.advice = Some(advice.into());
        self
    }

    /// Replaces the detail and the fields.
    pub fn with_detail(mut self, detail: impl Into<String>) -> ApiProblem {
        self.detail = detail.into();
        self.wrong.clear();
        self
    }

    /// The exit code: a negative result, or a failure if the server did not evaluate the call, because of a missing
    /// token, too many requests, a wrong path or an error of the server.
    pub fn exit(&self) -> Exit {
        let unanswered = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS];
        let heard = self.code != "no_such_path" && !unanswered.contains(&self.status);
        match self.status.is_client_error() && heard {
            true => Exit::No,
            false => Exit::Unusable,
        }
    }

    /// The problem as text: every invalid field with its help, or the detail.
    pub fn lines(&self, palette: Palette) -> String {
        let reason = match self.wrong.as_slice() {
            [] => visible(&self.detail),
            [only] => only.line(palette),
            several => format!("{} problems", several.len()),
        };
        let place = palette.faint(&format!("({}, status {})", self.code, self.status.as_u16()));
        let mut text = format!("{}: {reason} {place}\n", palette.bad("error"));
        for wrong in &self.wrong {
            if self.wrong.len() > 1 {
                text.push_str(&format!("  {}\n", wrong.line(palette)));
            }
            if let Some(help) = &wrong.help {
                text.push_str(&format!("    {}\n", palette.hint(&format!("help: {help}"))));
            }
        }
        if let Some(advice) = &self.advice {
            text.push_str(&format!("  {}\n", palette.hint(advice)));
        }
        text
    }
}

impl FieldProblem {
    fn read(value: &Value) -> Option<FieldProblem> {
        let message = text(value, "message").or_else(|| text(value, "detail"))?;
        Some(FieldProblem { field: text(value, "field").unwrap_or_default(), message, help: text(value, "help") })
    }

    fn line(&self, palette: Palette) -> String {
        // Some messages begin with the name of the field.
        let message =
            self.message.strip_prefix(&self.field).map_or(self.message.as_str(), |rest| rest.trim_start_matches(": "));
        match self.field.as_str() {
            "" => visible(&self.message),
            field if message.starts_with(' ') => format!("{}{}", palette.strong(field), visible(message)),
            field => format!("{}: {}", palette.strong(field), visible(message)),
        }
    }
}

impl fmt::Display for ApiProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rejected the call: {} ({}, status {})", self.from, self.detail, self.code, self.status.as_u16())
    }
}

impl std::error::Error for ApiProblem {}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(status: u16, problem: &Value) -> String {
        let status = StatusCode::from_u16(status).unwrap();
        ApiProblem::read("http://a", status, problem).lines(Palette { colour: false })
    }

    #[test]
    fn every_field_has_a_line_without_control_characters() {
        let problem = json!({
            "title": "Not valid", "status": 422, "detail": "the rule is not valid", "code": "invalid",
            "errors": [
                { "field": "limit.window", "code": "no-unit", "message": "`60` has no unit", "help": "write 60s" },
                { "field": "", "code": "x", "message": "odd \u{1b}[31m" },
            ],
        });
        let expected = "error: 2 problems (invalid, status 422)\n  limit.window: `60` has no unit\n    \
                        help: write 60s\n  odd \\u{1b}[31m\n";
        assert_eq!(shown(422, &problem), expected);
    }

    #[test]
    fn a_single_field_is_printed_once() {
        let problem = json!({ "detail": "there is no such field", "code": "unknown_field", "field": "limt", "help": "did you mean `limit`?" });
        let expected =
            "error: limt: there is no such field (unknown_field, status 400)\n    help: did you mean `limit`?\n";
        assert_eq!(shown(400, &problem), expected);
        let problem =
            json!({ "detail": "x", "code": "c", "errors": [{ "field": "a.b", "message": "a.b should be 1" }] });
        assert_eq!(shown(422, &problem), "error: a.b should be 1 (c, status 422)\n");
        let problem = json!({ "detail": "x", "code": "c", "errors": [{ "field": "a.b", "message": "a.b: no" }] });
        assert_eq!(shown(422, &problem), "error: a.b: no (c, status 422)\n");
        assert_eq!(shown(500, &json!({})), "error: no reason given (?, status 500)\n");
    }

    #[test]
    fn a_call_that_was_not_evaluated_is_a_failure() {
        for (status, exit) in [(404, Exit::No), (412, Exit::No), (422, Exit::No), (401, Exit::Unusable)] {
            assert_eq!(ApiProblem::read("", StatusCode::from_u16(status).unwrap(), &json!({})).exit(), exit);
        }
        for status in [403, 429, 500, 503, 507] {
            let problem = ApiProblem::read("", StatusCode::from_u16(status).unwrap(), &json!({}));
            assert_eq!(problem.exit(), Exit::Unusable, "{status}");
        }
    }
}
