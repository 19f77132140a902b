//! Errors of a request body: a stable code, the path of the field, a sentence. serde errors carry only text, so an
//! error passes through serde as text with separators.

use std::fmt;

use serde::de::Error;

pub(super) const EXAMPLE: &str = "send a JSON object such as {\"client_key\":\"user:42\",\"endpoint\":\"/api/orders\"}; a batch is {\"requests\":[…]}";
pub(super) const COST_WANTED: &str = "should be a whole number from 0 to 9007199254740991";

/// Why a body was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyError {
    /// Stable, for programs.
    pub code: &'static str,
    /// The path of the field; empty for the body as a whole.
    pub field: String,
    /// For people.
    pub detail: String,
}

/// Separates the parts of an error on its way through serde. No message contains it.
const MARK: char = '\u{1f}';

/// An error of our own: code, path, detail.
pub(super) fn fault<E: Error>(code: BodyErrorCode, field: &str, detail: impl fmt::Display) -> E {
    E::custom(format_args!("{}{MARK}{field}{MARK}{detail}", code.name()))
}

/// Prefixes the path of an inner error with `outer`; an error of serde about a type becomes `wrong_type`.
pub(super) fn within<E: Error>(error: &E, outer: &str, wanted: &str) -> E {
    let text = error.to_string();
    let mut parts = text.split(MARK);
    if let (Some(code), Some(inner), Some(detail)) = (parts.next(), parts.next(), parts.next()) {
        let joint = if inner.is_empty() || inner.starts_with('[') { "" } else { "." };
        return E::custom(format_args!("{code}{MARK}{outer}{joint}{inner}{MARK}{}", without_place(detail)));
    }
    // serde's type errors repeat the input: they are not passed on.
    match text.starts_with("invalid type") || text.starts_with("invalid value") {
        true => fault(BodyErrorCode::WrongType, outer, wanted),
        false => E::custom(text),
    }
}

/// serde_json appends the position to a message; an error that passed through it twice has two.
fn without_place(detail: &str) -> &str {
    detail.rsplit_once(" at line ").map_or(detail, |(detail, _)| detail)
}

#[derive(Clone, Copy)]
pub(super) enum BodyErrorCode {
    WrongType,
    UnknownField,
    DuplicateField,
    MissingField,
    BadCost,
    BadText,
    BadName,
    TooMany,
}

impl BodyErrorCode {
    const ALL: [BodyErrorCode; 8] = [
        BodyErrorCode::WrongType,
        BodyErrorCode::UnknownField,
        BodyErrorCode::DuplicateField,
        BodyErrorCode::MissingField,
        BodyErrorCode::BadCost,
        BodyErrorCode::BadText,
        BodyErrorCode::BadName,
        BodyErrorCode::TooMany,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            BodyErrorCode::WrongType => "wrong_type",
            BodyErrorCode::UnknownField => "unknown_field",
            BodyErrorCode::DuplicateField => "duplicate_field",
            BodyErrorCode::MissingField => "missing_field",
            BodyErrorCode::BadCost => "bad_cost",
            BodyErrorCode::BadText => "bad_text",
            BodyErrorCode::BadName => "bad_attribute_name",
            BodyErrorCode::TooMany => "too_many",
        }
    }
}

impl BodyError {
    pub(super) fn new(code: BodyErrorCode, field: &str, detail: &str) -> BodyError {
        BodyError { code: code.name(), field: field.to_owned(), detail: detail.to_owned() }
    }

    /// The cost of a settled receipt is out of range.
    pub fn bad_cost() -> BodyError {
        BodyError::new(BodyErrorCode::BadCost, "cost", COST_WANTED)
    }

    pub(super) fn of(text: &str) -> BodyError {
        let mut parts = text.split(MARK);
        if let (Some(code), Some(field), Some(detail)) = (parts.next(), parts.next(), parts.next())
            && let Some(code) = BodyErrorCode::ALL.into_iter().find(|known| known.name() == code)
        {
            return BodyError { code: code.name(), field: field.to_owned(), detail: without_place(detail).to_owned() };
        }
        match text.starts_with("invalid type") || text.starts_with("invalid value") {
            true => BodyError { code: "wrong_type", field: String::new(), detail: EXAMPLE.to_owned() },
            false => {
                BodyError { code: "not_json", field: String::new(), detail: format!("the body is not JSON: {text}") }
            }
        }
    }
}
