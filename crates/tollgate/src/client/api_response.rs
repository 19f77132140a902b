//! What a server answered, and what that means for somebody at a terminal.

use anyhow::{Result, anyhow};
use hyper::StatusCode;
use hyper::body::Bytes;
use serde_json::Value;

use super::api_problem::ApiProblem;

/// An answer as it arrived.
#[derive(Debug)]
pub struct ApiResponse {
    /// Who gave it.
    pub from: String,
    /// Its status.
    pub status: StatusCode,
    /// Its media type.
    pub media: String,
    /// The version of what it shows.
    pub etag: Option<String>,
    /// Its body.
    pub body: Bytes,
}

impl ApiResponse {
    /// The JSON object it holds, which has the member `wanted`; an error for problems, and for what is not ours. The
    /// member decides, not the status: a server may be set to answer refusals by 429.
    pub fn object(&self, wanted: &str) -> Result<Value> {
        match serde_json::from_slice::<Value>(&self.body) {
            Ok(value) if value.get(wanted).is_some() => Ok(value),
            Ok(value) if value.get("code").is_some() => Err(self.problem(&value)),
            _ => Err(self.not_tollgate()),
        }
    }

    /// Itself if all went well; a [`ApiProblem`] if the server says why it did not, and an error for strangers.
    pub fn ok(self) -> Result<ApiResponse> {
        if self.status.is_success() {
            return Ok(self);
        }
        match serde_json::from_slice::<Value>(&self.body) {
            Ok(value) if value.get("code").is_some() => Err(ApiProblem::read(&self.from, self.status, &value).into()),
            _ => Err(self.not_tollgate()),
        }
    }

    /// The JSON it holds.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).map_err(|_| self.not_tollgate())
    }

    /// The body as it came. Call it for what [`ApiResponse::object`] found to be JSON.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim_end().to_owned()
    }

    fn problem(&self, problem: &Value) -> anyhow::Error {
        let member = |name: &str| problem.get(name).and_then(Value::as_str);
        let (from, code) = (&self.from, member("code").unwrap_or("?"));
        if self.status == StatusCode::UNAUTHORIZED {
            return anyhow!("{from} wants a token that it knows: use --token-file FILE or TOLLGATE_TOKEN ({code})");
        }
        let field = member("field").map_or_else(String::new, |field| format!("{field}: "));
        let detail = member("detail").unwrap_or("it did not say why");
        anyhow!("{from} refused the request: {field}{detail} ({code}, status {})", self.status.as_u16())
    }

    fn not_tollgate(&self) -> anyhow::Error {
        let media = if self.media.is_empty() { "no media type" } else { &self.media };
        anyhow!("{} is no Tollgate server: it answered status {} with {media}", self.from, self.status.as_u16())
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
            body: body.to_owned().into(),
        };
        match response.object("allowed") {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn tells_answers_from_problems_and_strangers() {
        assert_eq!(shown(200, r#"{"allowed":true}"#), r#"{"allowed":true}"#);
        assert_eq!(shown(429, r#"{"allowed":false,"code":"x"}"#), r#"{"allowed":false,"code":"x"}"#);
        let problem = r#"{"code":"bad_cost","field":"cost","detail":"should be a number"}"#;
        assert_eq!(
            shown(400, problem),
            "http://a refused the request: cost: should be a number (bad_cost, status 400)"
        );
        let token = "http://a wants a token that it knows: use --token-file FILE or TOLLGATE_TOKEN (no_token)";
        assert_eq!(shown(401, r#"{"code":"no_token"}"#), token);
        for not_tollgate in ["<html>", "", "[]", "{}", "{\"error\":1}"] {
            assert_eq!(
                shown(301, not_tollgate),
                "http://a is no Tollgate server: it answered status 301 with text/html"
            );
        }
    }
}
