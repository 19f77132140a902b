//! The body that presents a receipt, with the real cost where one is settled.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};

use super::body_error::{BodyErrorCode, fault};
use super::fields::{CostSeed, TextSeed, among, in_cost, put, shown, text};

pub(super) struct ReceiptSeed<'a> {
    pub(super) field: &'static str,
    pub(super) with_cost: bool,
    pub(super) body: PhantomData<&'a ()>,
}

impl<'de: 'a, 'a> DeserializeSeed<'de> for ReceiptSeed<'a> {
    type Value = (Cow<'a, str>, u64);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de: 'a, 'a> Visitor<'de> for ReceiptSeed<'a> {
    type Value = (Cow<'a, str>, u64);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a receipt")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let (mut receipt, mut cost) = (None, None);
        while let Some(name) = map.next_key_seed(TextSeed(PhantomData))? {
            if name == self.field {
                let value = text(&mut map, self.field)?;
                put(Some(&mut receipt), value, self.field)?;
            } else if name == "cost" && self.with_cost {
                let value = map.next_value_seed(CostSeed).map_err(|error| in_cost(&error))?;
                put(Some(&mut cost), value, "cost")?;
            } else {
                let fields: &[&str] = if self.with_cost { &[self.field, "cost"] } else { &[self.field] };
                return Err(fault(BodyErrorCode::UnknownField, &shown(&name), among(&name, fields)));
            }
        }
        let missing = |name: &str| fault(BodyErrorCode::MissingField, name, "is missing");
        let cost = if self.with_cost { cost.ok_or_else(|| missing("cost"))? } else { 0 };
        Ok((receipt.ok_or_else(|| missing(self.field))?, cost))
    }
}
