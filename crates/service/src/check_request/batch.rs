//! `{"requests":[…]}`

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::body_error::{BodyErrorCode, fault, within};
use super::values::{TextSeed, among, put, shown};
use super::{CheckRequest, CheckRequestSeed};

/// Most requests of a batch.
pub const BATCH_MAX: usize = 1000;

/// Reads a batch; holds the length of the body in bytes.
pub(super) struct BatchSeed<'a>(pub(super) usize, pub(super) PhantomData<&'a ()>);

impl<'de: 'a, 'a> DeserializeSeed<'de> for BatchSeed<'a> {
    type Value = Vec<CheckRequest<'a>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<CheckRequest<'a>>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

const BATCH_WANTED: &str = "should be a list of requests";

impl<'de: 'a, 'a> Visitor<'de> for BatchSeed<'a> {
    type Value = Vec<CheckRequest<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Vec<CheckRequest<'a>>, M::Error> {
        let mut requests = None;
        while let Some(name) = map.next_key_seed(TextSeed(PhantomData))? {
            if name != "requests" {
                let hint = among(&name, &["requests"]);
                let hint =
                    format!("{hint}; a batch is {{\"requests\":[…]}}, and everything else stands in its requests");
                return Err(fault(BodyErrorCode::UnknownField, &shown(&name), hint));
            }
            let list = map.next_value_seed(ListSeed(self.0, PhantomData));
            let list = list.map_err(|error| within(&error, "requests", BATCH_WANTED))?;
            put(Some(&mut requests), list, "requests")?;
        }
        requests.ok_or_else(|| fault(BodyErrorCode::MissingField, "requests", BATCH_WANTED))
    }
}

struct ListSeed<'a>(usize, PhantomData<&'a ()>);

/// Typical size of a request, to reserve the list once.
const REQUEST_BYTES: usize = 64;

impl<'de: 'a, 'a> DeserializeSeed<'de> for ListSeed<'a> {
    type Value = Vec<CheckRequest<'a>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<CheckRequest<'a>>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de: 'a, 'a> Visitor<'de> for ListSeed<'a> {
    type Value = Vec<CheckRequest<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(BATCH_WANTED)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Vec<CheckRequest<'a>>, S::Error> {
        let mut requests = Vec::with_capacity((self.0 / REQUEST_BYTES).min(BATCH_MAX));
        loop {
            let index = requests.len();
            if index == BATCH_MAX {
                return match list.next_element::<IgnoredAny>()? {
                    Some(_) => {
                        Err(fault(BodyErrorCode::TooMany, "", format_args!("holds more than {BATCH_MAX} requests")))
                    }
                    None => Ok(requests),
                };
            }
            let request = list.next_element_seed(CheckRequestSeed(PhantomData));
            match request.map_err(|error| within(&error, &format!("[{index}]"), "should be a request"))? {
                Some(request) => requests.push(request),
                None if requests.is_empty() => return Err(fault(BodyErrorCode::MissingField, "", "holds no request")),
                None => return Ok(requests),
            }
        }
    }
}
