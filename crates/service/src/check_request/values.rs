//! Single values of a body: texts, amounts, and the errors around them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use tollgate_rules::nearest;

use super::body_error::{BodyErrorCode, COST_WANTED, fault, within};

/// The largest cost: what every JSON reader can represent exactly.
pub const COST_MAX: u64 = (1 << 53) - 1;
pub(super) const NUL: &str = "should not hold NUL";

/// Error text for an unknown field, with a suggestion.
pub(super) fn among(name: &str, fields: &[&str]) -> String {
    match nearest(name, fields.iter().copied()) {
        Some(meant) => format!("there is no such field; did you mean `{meant}`?"),
        None => format!("there is no such field; the fields are {}", fields.join(", ")),
    }
}

/// A name from the request, safe to repeat: shortened, visible ASCII only.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(64).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

pub(super) fn put<T, E: Error>(place: Option<&mut Option<T>>, value: T, name: &str) -> Result<(), E> {
    match place {
        Some(place @ None) => *place = Some(value),
        _ => return Err(fault(BodyErrorCode::DuplicateField, name, "is there twice")),
    }
    Ok(())
}

pub(super) fn text<'de: 'a, 'a, M: MapAccess<'de>>(map: &mut M, name: &str) -> Result<Cow<'a, str>, M::Error> {
    map.next_value_seed(TextSeed(PhantomData)).map_err(|error| within(&error, name, "should be text"))
}

pub(super) fn in_cost<E: Error>(error: &E) -> E {
    let error: E = within(error, "cost", COST_WANTED);
    let text = error.to_string();
    match text.strip_prefix(BodyErrorCode::WrongType.name()) {
        Some(rest) => E::custom(format_args!("{}{rest}", BodyErrorCode::BadCost.name())),
        None => error,
    }
}

pub(super) struct CostSeed;

impl<'de> DeserializeSeed<'de> for CostSeed {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_u64(self)
    }
}

impl Visitor<'_> for CostSeed {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(COST_WANTED)
    }

    fn visit_u64<E: Error>(self, cost: u64) -> Result<u64, E> {
        if cost <= COST_MAX { Ok(cost) } else { Err(fault(BodyErrorCode::BadCost, "", COST_WANTED)) }
    }
}

/// Text without NUL, which no key may contain. A whole number is accepted as its digits: ids often are numbers.
pub(super) struct TextSeed<'a>(pub(super) PhantomData<&'a ()>);

impl<'de: 'a, 'a> DeserializeSeed<'de> for TextSeed<'a> {
    type Value = Cow<'a, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'a, str>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de: 'a, 'a> Visitor<'de> for TextSeed<'a> {
    type Value = Cow<'a, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    /// Text without escapes: JSON allows no raw control characters, so it contains no NUL.
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Cow<'a, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Cow<'a, str>, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Cow<'a, str>, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Cow<'a, str>, E> {
        match text.contains('\0') {
            true => Err(fault(BodyErrorCode::BadText, "", NUL)),
            false => Ok(Cow::Owned(text.to_owned())),
        }
    }
}
