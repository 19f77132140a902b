//! A response of a server, and the errors in it.

use anyhow::{Result, anyhow};
use hyper::StatusCode;
use hyper::body::Bytes;
use serde_json::Value;

use super::api_problem::ApiProblem;

/// A response.
#[derive(Debug)]
pub struct ApiResponse {
    /// The server.
    pub from: String,
    /// The status.
    pub status: StatusCode,
    /// The media type.
    pub media: String,
    /// The ETag of the resource.
    pub etag: Option<String>,
    /// Where the next page begins, where the body cannot say so.
    pub next_cursor: Option<String>,
    /// The body.
    pub body: Bytes,
}

impl ApiResponse {
    /// The JSON object in the body, if it has the member `wanted`; otherwise an error. The member decides, not the
    /// status: a server may be configured to answer denied checks with 429.
    pub fn object(&self, wanted: &str) -> Result<Value> {
        match serde_json::from_slice::<Value>(&self.body) {
            Ok(value) if value.get(wanted).is_some() => Ok(value),
            Ok(value) if value.get("code").is_some() => Err(self.problem(&value)),
            _ => Err(self.not_tollgate()),
        }
    }

    /// The response if it is a success; an [`ApiProblem`] for a problem document, and another error for anything else.
    pub fn ok(self) -> Result<ApiResponse> {
        if self.status.is_success() {
            return Ok(self);
        }
        match serde_json::from_slice::<Value>(&self.body) {
            Ok(value) if value.get("code").is_some() => Err(ApiProblem::read(&self.from, self.status, &value).into()),
            _ => Err(self.not_tollgate()),
        }
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).map_err(|_| self.not_tollgate())
    }

    /// The body as text, for a response that is known to be JSON.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim_end().to_owned()
    }

    fn problem(&self, problem: &Value) -> anyhow::Error {
        let member = |name: &str| problem.get(name).and_then(Value::as_str);
        let (from, code) = (&self.from, member("code").unwrap_or("?"));
        if self.status == StatusCode::UNAUTHORIZED {
            return anyhow!("{from} requires a valid token: use --token-file FILE or TOLLGATE_TOKEN ({code})");
        }
        let field = member("field").map_or_else(String::new, |field| format!("{field}: "));
        let detail = member("detail").unwrap_or("no reason given");
        anyhow!("{from} rejected the request: {field}{detail} ({code}, status {})", self.status.as_u16())
    }

    fn not_tollgate(&self) -> anyhow::Error {
        let media = if self.media.is_empty() { "no media type" } else { &self.media };
        anyhow!("{} is not a Tollgate server: it responded with status {} and {media}", self.from, self.status.as_u16())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(status: u16, body: &str) -> String {
        let status = StatusCode::from_u16(status).unwrap();
        let response = ApiResponse {
            from: "http://a".to_owned(),
            status,
            media: "text/html".to_owned(),
            etag: None,
            next_cursor: None,
            body: body.to_owned().into(),
        };
        match response.object("allowed") {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn distinguishes_decisions_problems_and_other_servers() {
        assert_eq!(shown(200, r#"{"allowed":true}"#), r#"{"allowed":true}"#);
        assert_eq!(shown(429, r#"{"allowed":false,"code":"x"}"#), r#"{"allowed":false,"code":"x"}"#);
        let problem = r#"{"code":"bad_cost","field":"cost","detail":"should be a number"}"#;
        assert_eq!(
            shown(400, problem),
            "http://a rejected the request: cost: should be a number (bad_cost, status 400)"
        );
        let token = "http://a requires a valid token: use --token-file FILE or TOLLGATE_TOKEN (no_token)";
        assert_eq!(shown(401, r#"{"code":"no_token"}"#), token);
        for not_tollgate in ["<html>", "", "[]", "{}", "{\"error\":1}"] {
            assert_eq!(
                shown(301, not_tollgate),
                "http://a is not a Tollgate server: it responded with status 301 and text/html"
            );
        }
    }
}
