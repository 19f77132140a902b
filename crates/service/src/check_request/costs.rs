//! `"costs":{"output_tokens":4096}`: amounts by meter.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use tollgate_core::Request;
use tollgate_rules::check::METERS_MAX;
use tollgate_rules::key::is_attribute;

use super::body_error::{BodyErrorCode, COST_WANTED, fault, within};
use super::values::{COST_MAX, CostSeed, TextSeed, shown};

pub(super) const COSTS_WANTED: &str = "should be an object of amounts, such as {\"output_tokens\":4096}";

/// Amounts by meter, besides `requests`.
pub(super) type MeterCosts<'a> = Vec<(Cow<'a, str>, u64)>;

/// Reads amounts by meter; that of `requests` is the cost.
pub(super) struct CostsSeed<'s, 'a> {
    pub(super) cost: &'s mut Option<u64>,
    pub(super) costs: &'s mut MeterCosts<'a>,
}

impl<'de: 'a, 'a> DeserializeSeed<'de> for CostsSeed<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de: 'a, 'a> Visitor<'de> for CostsSeed<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("amounts")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(meter) = map.next_key_seed(TextSeed(PhantomData))? {
            let name = shown(&meter);
            let amount = map.next_value_seed(CostSeed).map_err(|error| in_amount(&error, &name))?;
            put_cost(self.cost, self.costs, meter, amount).map_err(|(code, detail)| fault(code, &name, detail))?;
        }
        Ok(())
    }
}

/// An amount of the wrong type is a bad cost, as an amount out of range is.
fn in_amount<E: serde::de::Error>(error: &E, meter: &str) -> E {
    let text = within::<E>(error, meter, COST_WANTED).to_string();
    match text.strip_prefix(BodyErrorCode::WrongType.name()) {
        Some(rest) => E::custom(format_args!("{}{rest}", BodyErrorCode::BadCost.name())),
        None => E::custom(text),
    }
}

/// Adds the amount of one meter.
pub(super) fn put_cost<'a>(
    cost: &mut Option<u64>,
    costs: &mut MeterCosts<'a>,
    meter: Cow<'a, str>,
    amount: u64,
) -> Result<(), (BodyErrorCode, String)> {
    let twice = || (BodyErrorCode::DuplicateField, "is there twice".to_owned());
    if amount > COST_MAX {
        return Err((BodyErrorCode::BadCost, COST_WANTED.to_owned()));
    }
    if meter == Request::REQUESTS {
        return cost.replace(amount).map_or(Ok(()), |_| Err(twice()));
    }
    if !is_attribute(&meter) {
        let detail = "a meter is a lower-case letter, then up to 63 of a-z, 0-9, _, ., -";
        return Err((BodyErrorCode::BadName, detail.to_owned()));
    }
    if costs.iter().any(|(other, _)| *other == meter) {
        return Err(twice());
    }
    if costs.len() == METERS_MAX {
        return Err((BodyErrorCode::TooMany, format!("more than {METERS_MAX} meters")));
    }
    costs.push((meter, amount));
    Ok(())
}
