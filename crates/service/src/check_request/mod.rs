//! The check request of every transport, and its JSON form. Values are borrowed where possible; a malformed body is
//! rejected with a stable code and the path of the field, before anything is charged.

mod batch;
mod body_error;
mod fields;
mod receipt;

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::de::DeserializeSeed;

pub use self::batch::BATCH_MAX;
pub use self::body_error::BodyError;
pub use self::fields::{COST_MAX, CheckRequest, CustomAttributes};

use self::batch::BatchSeed;
use self::body_error::EXAMPLE;
use self::fields::CheckRequestSeed;
use self::receipt::ReceiptSeed;

/// Reads one request.
pub fn read_check(body: &[u8]) -> Result<CheckRequest<'_>, BodyError> {
    read(body, CheckRequestSeed(PhantomData))
}

/// Reads `{"requests":[…]}`.
pub fn read_batch(body: &[u8]) -> Result<Vec<CheckRequest<'_>>, BodyError> {
    read(body, BatchSeed(body.len(), PhantomData))
}

/// Reads `{"<field>":"…","cost":n}`: a receipt. `cost` is accepted and required only if `with_cost` is true.
pub fn read_receipt<'a>(
    body: &'a [u8],
    field: &'static str,
    with_cost: bool,
) -> Result<(Cow<'a, str>, u64), BodyError> {
    read(body, ReceiptSeed { field, with_cost, body: PhantomData })
}

fn read<'a, S: DeserializeSeed<'a>>(body: &'a [u8], seed: S) -> Result<S::Value, BodyError> {
    if body.is_empty() {
        return Err(BodyError { code: "empty_body", field: String::new(), detail: EXAMPLE.to_owned() });
    }
    // Once for the whole body: checking every text in it costs more than all other parsing.
    let Ok(text) = str::from_utf8(body) else {
        return Err(BodyError { code: "not_json", field: String::new(), detail: "the body is not UTF-8".to_owned() });
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| BodyError::of(&error.to_string()))
}

#[cfg(test)]
mod tests;
