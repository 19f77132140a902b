//! Query parameters, parsed against those that an endpoint accepts: unknown and repeated ones are errors.
//!
//! Not `form_urlencoded`: it replaces malformed percent-encoding silently, and the API reports it.

use tollgate_control::Instant;
use tollgate_rules::{datetime, nearest};

use super::parameter::{Parameter, ParameterKind};
use super::percent::{self, Plus};
use super::problem::AdminProblem;

/// The query parameters of a call, decoded and checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryParameters(Vec<(&'static str, String)>);

/// Parameters in which callers might send a token, which proxies and histories would then keep.
const TOKENS: &[&str] = &["token", "access_token", "authorization", "bearer"];

impl QueryParameters {
    /// Parses a query.
    pub fn read(accepted: &[&'static Parameter], text: Option<&str>) -> Result<QueryParameters, AdminProblem> {
        let mut query = QueryParameters::default();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = percent::decode(name, Plus::IsSpace).zip(percent::decode(value, Plus::IsSpace));
            let Some((name, value)) = decoded else {
                return Err(bad("", "A parameter is not percent-encoded UTF-8, or holds a NUL."));
            };
            let parameter = accepted.iter().copied().find(|known| known.name == name);
            let parameter = parameter.ok_or_else(|| unknown(accepted, &name))?;
            if query.text(parameter.name).is_some() {
                return Err(bad(parameter.name, format!("The parameter {name} stands twice.")));
            }
            check(parameter, &value)?;
            query.0.push((parameter.name, value));
        }
        match accepted.iter().find(|known| known.is_required && query.text(known.name).is_none()) {
            Some(missing) => Err(bad(missing.name, format!("The parameter {} is missing.", missing.name))),
            None => Ok(query),
        }
    }

    /// True if a query seems to contain a token: it is refused before any other check.
    pub fn holds_token(text: Option<&str>) -> bool {
        let pairs = text.unwrap_or_default().split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let decode = |text: &str| percent::decode(text, Plus::IsSpace).unwrap_or_default();
        let mut pairs = pairs.map(|(name, value)| (decode(name).to_ascii_lowercase(), decode(value)));
        pairs.any(|(name, value)| TOKENS.contains(&name.as_str()) || value.starts_with("tg_"))
    }

    /// A parameter as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str())
    }

    /// A parameter as an owned text.
    pub fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// A boolean parameter.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(|text| text == "true")
    }

    /// A numeric parameter.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|text| text.parse().ok())
    }

    /// A timestamp parameter.
    pub fn time(&self, name: &str) -> Option<Instant> {
        self.text(name).and_then(instant)
    }
}

/// Parses a timestamp.
pub fn instant(text: &str) -> Option<Instant> {
    datetime::parse(text).ok().map(|nanos| Instant(i64::try_from(nanos / 1000).unwrap_or(i64::MAX)))
}

fn check(parameter: &Parameter, value: &str) -> Result<(), AdminProblem> {
    let Parameter { name, takes, .. } = parameter;
    let number = |max_bytes: i64| {
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| value.parse::<i64>().ok()).flatten().filter(|number| (1..=max_bytes).contains(number))
    };
    let wanted = match takes {
        ParameterKind::Text | ParameterKind::Cursor if !value.is_empty() => return Ok(()),
        ParameterKind::Text | ParameterKind::Cursor => "takes some text".to_owned(),
        ParameterKind::Flag if matches!(value, "true" | "false") => return Ok(()),
        ParameterKind::Flag => "takes true or false".to_owned(),
        ParameterKind::Count if number(1000).is_some() => return Ok(()),
        ParameterKind::Count => "takes a number from 1 to 1000".to_owned(),
        ParameterKind::Generation if value == "0" || number(i64::MAX).is_some() => return Ok(()),
        ParameterKind::Generation => "takes the number of a generation".to_owned(),
        ParameterKind::Time if instant(value).is_some() => return Ok(()),
        ParameterKind::Time => "takes a point in time such as 2026-12-01T00:00:00Z (write + as %2B)".to_owned(),
        ParameterKind::OneOf(words) if words.contains(&value) => return Ok(()),
        ParameterKind::OneOf(words) => format!("takes one of {}", words.join(", ")),
    };
    Err(bad(name, format!("The parameter {name} {wanted}.")))
}

fn bad(name: &str, detail: impl Into<String>) -> AdminProblem {
    let detail = detail.into();
    let faults = vec![super::problem::fault(name, "bad-parameter", detail.trim_end_matches('.'), "")];
    AdminProblem { faults, ..AdminProblem::new(400, "bad_parameter", detail) }
}

fn unknown(accepted: &[&Parameter], name: &str) -> AdminProblem {
    let known: Vec<&str> = accepted.iter().map(|parameter| parameter.name).collect();
    let name = tollgate_rules::problem::quote(name);
    let detail = match (nearest(name.trim_matches('`'), known.iter().copied()), known.is_empty()) {
        (Some(meant), _) => format!("There is no parameter {name}; did you mean {meant}?"),
        (None, true) => format!("There is no parameter {name}; this call takes none."),
        (None, false) => format!("There is no parameter {name}; there are {}.", known.join(", ")),
    };
    AdminProblem { code: "unknown_parameter", ..bad(name.trim_matches('`'), detail) }
}
