//! JSON becomes a request: borrowed where it can be, refused with a stable code and the path of the field where it
//! must be. Nothing that was refused has charged anything, because nothing was asked yet.

mod asked;
mod batch;
mod fault;
mod receipt;

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::de::DeserializeSeed;

pub use self::asked::{Asked, Custom};
pub use self::fault::Fault;

use self::asked::AskedSeed;
use self::batch::BatchSeed;
use self::receipt::ReceiptSeed;

/// The largest cost: what every JSON reader can represent exactly.
pub const COST_MAX: u64 = (1 << 53) - 1;
/// Most attributes of a caller's own: as many as the rules look at.
const CUSTOM_MAX: usize = 64;
/// Most requests of a batch.
pub const BATCH_MAX: usize = 1000;

/// Reads one request.
pub fn asked(body: &[u8]) -> Result<Asked<'_>, Fault> {
    read(body, AskedSeed(PhantomData))
}

/// Reads `{"requests":[…]}`.
pub fn batch(body: &[u8]) -> Result<Vec<Asked<'_>>, Fault> {
    read(body, BatchSeed(body.len(), PhantomData))
}

/// Reads `{"<field>":"…","cost":n}`: a receipt that comes back. The cost only where `with_cost` says so.
pub fn receipt<'a>(body: &'a [u8], field: &'static str, with_cost: bool) -> Result<(Cow<'a, str>, u64), Fault> {
    read(body, ReceiptSeed { field, with_cost, body: PhantomData })
}

fn read<'a, S: DeserializeSeed<'a>>(body: &'a [u8], seed: S) -> Result<S::Value, Fault> {
    if body.is_empty() {
        return Err(Fault { code: "empty_body", field: String::new(), detail: EXAMPLE.to_owned() });
    }
    // Once for the whole body: asking for every text in it costs more than the rest of reading it.
    let Ok(text) = str::from_utf8(body) else {
        return Err(Fault { code: "not_json", field: String::new(), detail: "the body is not UTF-8".to_owned() });
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| Fault::of(&error.to_string()))
}

const EXAMPLE: &str = "send a JSON object such as {\"client_key\":\"user:42\",\"endpoint\":\"/api/orders\"}; a batch is {\"requests\":[…]}";

#[cfg(test)]
mod tests;
