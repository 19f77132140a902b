//! The body that presents a receipt, with amounts where it is settled or extended.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use tollgate_core::Request;

use super::body_error::{BodyErrorCode, fault, within};
use super::costs::{COSTS_WANTED, CostsSeed, MeterCosts};
use super::values::{CostSeed, TextSeed, among, in_cost, put, shown, text};

/// A receipt, and amounts by meter.
#[derive(Debug)]
pub struct ReceiptBody<'a> {
    /// The signed text.
    pub receipt: Cow<'a, str>,
    cost: Option<u64>,
    costs: MeterCosts<'a>,
}

impl ReceiptBody<'_> {
    /// The amounts, `requests` among them if it has one.
    pub fn costs(&self) -> Vec<(&str, u64)> {
        let requests = self.cost.map(|cost| (Request::REQUESTS, cost));
        requests.into_iter().chain(self.costs.iter().map(|(meter, amount)| (&**meter, *amount))).collect()
    }
}

/// The names under which a receipt is accepted; slots and reservations are the same thing.
const NAMES: [&str; 2] = ["reservation", "slot"];

pub(super) struct ReceiptSeed<'a> {
    /// Amounts are accepted, and one is required.
    pub(super) with_costs: bool,
    pub(super) body: PhantomData<&'a ()>,
}

impl<'de: 'a, 'a> DeserializeSeed<'de> for ReceiptSeed<'a> {
    type Value = ReceiptBody<'a>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de: 'a, 'a> Visitor<'de> for ReceiptSeed<'a> {
    type Value = ReceiptBody<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a receipt")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let (mut receipt, mut cost, mut costs, mut listed) = (None, None, MeterCosts::new(), None);
        while let Some(name) = map.next_key_seed(TextSeed(PhantomData))? {
            match &*name {
                name if NAMES.contains(&name) => {
                    let value = text(&mut map, name)?;
                    put(Some(&mut receipt), value, name)?;
                }
                "cost" if self.with_costs => {
                    let value = map.next_value_seed(CostSeed).map_err(|error| in_cost(&error))?;
                    put(Some(&mut cost), value, "cost")?;
                }
                "costs" if self.with_costs => {
                    put(Some(&mut listed), (), "costs")?;
                    let seed = CostsSeed { cost: &mut cost, costs: &mut costs };
                    map.next_value_seed(seed).map_err(|error| within(&error, "costs", COSTS_WANTED))?;
                }
                name => {
                    let fields: &[&str] = if self.with_costs { &["reservation", "cost", "costs"] } else { &NAMES };
                    return Err(fault(BodyErrorCode::UnknownField, &shown(name), among(name, fields)));
                }
            }
        }
        let missing = |name: &str| fault(BodyErrorCode::MissingField, name, "is missing");
        if self.with_costs && cost.is_none() && listed.is_none() {
            return Err(missing("cost"));
        }
        let receipt = receipt.ok_or_else(|| missing(if self.with_costs { "reservation" } else { "slot" }))?;
        Ok(ReceiptBody { receipt, cost, costs })
    }
}
