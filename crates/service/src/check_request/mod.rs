//! The check request of every transport, and its JSON form. Values are borrowed where possible; a malformed body is
//! rejected with a stable code and the path of the field, before anything is charged.

mod batch;
mod body_error;
mod costs;
mod fields;
mod receipt;
mod values;

use std::marker::PhantomData;

use serde::de::DeserializeSeed;

pub use self::batch::BATCH_MAX;
pub use self::body_error::BodyError;
pub use self::fields::{CheckRequest, RequestLists};
pub use self::receipt::ReceiptBody;
pub use self::values::COST_MAX;

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

/// Reads `{"reservation":"…","costs":{…}}`: a receipt. `cost` and `costs` are accepted, and one of them is required,
/// only if `with_costs` is true.
pub fn read_receipt(body: &[u8], with_costs: bool) -> Result<ReceiptBody<'_>, BodyError> {
    read(body, ReceiptSeed { with_costs, body: PhantomData })
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
