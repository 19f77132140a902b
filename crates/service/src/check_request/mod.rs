//! The check request of every transport, and its JSON form, field by field. Values are borrowed where possible; a malformed
//! body is rejected with a stable code and the path of the field, before anything is charged.

mod batch;
mod body_error;
mod costs;
mod receipt;
mod values;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use smallvec::SmallVec;
use tollgate_core::{Attribute, Request};
use tollgate_rules::key::is_attribute;
use tollgate_rules::nearest;

pub use self::batch::BATCH_MAX;
pub use self::body_error::BodyError;
pub use self::receipt::ReceiptBody;
pub use self::values::COST_MAX;

use self::batch::BatchSeed;
use self::body_error::{BodyErrorCode, COST_WANTED, EXAMPLE, fault, within};
use self::costs::{COSTS_WANTED, CostsSeed, MeterCosts, put_cost};
use self::receipt::ReceiptSeed;
use self::values::{CostSeed, NUL, TextSeed, in_cost, put, shown, text};

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

/// Most custom attributes: as many as the rules look at.
const CUSTOM_MAX: usize = 64;

/// A request as it was sent.
#[derive(Debug, Default)]
pub struct CheckRequest<'a> {
    known: [Option<Cow<'a, str>>; Attribute::ALL.len()],
    namespace: Option<Cow<'a, str>>,
    custom: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    cost: Option<u64>,
    costs: MeterCosts<'a>,
    peek: Option<bool>,
}

/// The lists of a request as the engine takes them.
#[derive(Debug)]
pub struct RequestLists<'a> {
    custom: SmallVec<[(&'a str, &'a str); 2]>,
    costs: SmallVec<[(&'a str, u64); 2]>,
}

impl<'a> CheckRequest<'a> {
    /// A request of a protocol that sends all fields as attributes, already checked to be UTF-8.
    pub fn named(
        namespace: &'a str,
        attributes: impl Iterator<Item = (&'a str, &'a str)>,
        cost: Option<u64>,
        peek: bool,
    ) -> Result<CheckRequest<'a>, BodyError> {
        let mut request = CheckRequest { cost, peek: Some(peek), ..CheckRequest::default() };
        if namespace.contains('\0') {
            return Err(BodyError::new(BodyErrorCode::BadText, "namespace", NUL));
        }
        if !namespace.is_empty() {
            request.namespace = Some(Cow::Borrowed(namespace));
        }
        if cost.is_some_and(|cost| cost > COST_MAX) {
            return Err(BodyError::new(BodyErrorCode::BadCost, "cost", COST_WANTED));
        }
        for (name, value) in attributes {
            let within = |code, detail: &str| BodyError::new(code, &format!("attributes.{}", shown(name)), detail);
            if value.contains('\0') {
                return Err(within(BodyErrorCode::BadText, NUL));
            }
            if let Some(place) = Attribute::from_name(name).and_then(|known| request.known.get_mut(known as usize)) {
                *place = Some(Cow::Borrowed(value));
                continue;
            }
            if request.custom.len() == CUSTOM_MAX {
                let detail = format!("holds more than {CUSTOM_MAX} attributes of your own");
                return Err(BodyError::new(BodyErrorCode::TooMany, "attributes", &detail));
            }
            if let Some(problem) = name_problem(name, &request.custom) {
                return Err(within(BodyErrorCode::BadName, problem));
            }
            request.custom.push((Cow::Borrowed(name), Cow::Borrowed(value)));
        }
        match request.has_no_attributes() {
            true => Err(BodyError::new(BodyErrorCode::MissingField, "attributes", WHO)),
            false => Ok(request),
        }
    }
}

const WHO: &str = "say who asks: client_key, api_key, user_id, ip, …";

impl CheckRequest<'_> {
    /// The namespace whose rules apply.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(Request::DEFAULT_NAMESPACE)
    }

    /// The lists that [`CheckRequest::request`] borrows.
    pub fn lists(&self) -> RequestLists<'_> {
        RequestLists {
            custom: self.custom.iter().map(|(name, value)| (&**name, &**value)).collect(),
            costs: self.costs.iter().map(|(meter, amount)| (&**meter, *amount)).collect(),
        }
    }

    /// The request as the engine takes it.
    pub fn request<'a>(&'a self, lists: &'a RequestLists<'_>) -> Request<'a> {
        let cost = self.cost.unwrap_or(1);
        let mut request = Request::new().with_custom(&lists.custom).with_costs(&lists.costs).cost(cost);
        for (attribute, value) in Attribute::ALL.into_iter().zip(&self.known) {
            if let Some(value) = value {
                request.set(attribute, value);
            }
        }
        if let Some(namespace) = &self.namespace {
            request.namespace = namespace;
        }
        if self.peek == Some(true) { request.peek() } else { request }
    }

    /// The same request with amounts of meters, from a protocol that has checked the amounts.
    pub fn with_costs<'c>(mut self, costs: impl Iterator<Item = (&'c str, u64)>) -> Result<Self, BodyError> {
        for (meter, amount) in costs {
            put_cost(&mut self.cost, &mut self.costs, Cow::Owned(meter.to_owned()), amount)
                .map_err(|(code, detail)| BodyError::new(code, &format!("costs.{}", shown(meter)), &detail))?;
        }
        Ok(self)
    }

    fn has_no_attributes(&self) -> bool {
        self.known.iter().all(Option::is_none) && self.custom.is_empty()
    }
}

struct CheckRequestSeed<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> DeserializeSeed<'de> for CheckRequestSeed<'a> {
    type Value = CheckRequest<'a>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<CheckRequest<'a>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de: 'a, 'a> Visitor<'de> for CheckRequestSeed<'a> {
    type Value = CheckRequest<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<CheckRequest<'a>, M::Error> {
        let mut request = CheckRequest::default();
        let (mut attributes, mut costs) = (None, None);
        while let Some(field) = map.next_key_seed(FieldSeed)? {
            match field {
                RequestField::Known(attribute) => {
                    let value = text(&mut map, attribute.name())?;
                    put(request.known.get_mut(attribute as usize), value, attribute.name())?;
                }
                RequestField::Namespace => {
                    let value = text(&mut map, "namespace")?;
                    put(Some(&mut request.namespace), value, "namespace")?;
                }
                RequestField::Cost => {
                    let value = map.next_value_seed(CostSeed).map_err(|error| in_cost(&error))?;
                    put(Some(&mut request.cost), value, "cost")?;
                }
                RequestField::Costs => {
                    put(Some(&mut costs), (), "costs")?;
                    let seed = CostsSeed { cost: &mut request.cost, costs: &mut request.costs };
                    map.next_value_seed(seed).map_err(|error| within(&error, "costs", COSTS_WANTED))?;
                }
                RequestField::Peek => {
                    let value = map.next_value().map_err(|error| within(&error, "peek", "should be true or false"))?;
                    put(Some(&mut request.peek), value, "peek")?;
                }
                RequestField::Attributes => {
                    put(Some(&mut attributes), (), "attributes")?;
                    let seed = CustomSeed(&mut request.custom);
                    map.next_value_seed(seed)
                        .map_err(|error| within(&error, "attributes", "should be an object with text values"))?;
                }
            }
        }
        match request.has_no_attributes() {
            true => Err(fault(BodyErrorCode::MissingField, "client_key", WHO)),
            false => Ok(request),
        }
    }
}

/// One field of a request.
enum RequestField {
    Known(Attribute),
    Namespace,
    Cost,
    Costs,
    Peek,
    Attributes,
}

struct FieldSeed;

impl<'de> DeserializeSeed<'de> for FieldSeed {
    type Value = RequestField;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RequestField, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldSeed {
    type Value = RequestField;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<RequestField, E> {
        Ok(match name {
            "cost" => RequestField::Cost,
            "costs" => RequestField::Costs,
            "peek" => RequestField::Peek,
            "namespace" => RequestField::Namespace,
            "attributes" => RequestField::Attributes,
            _ => match Attribute::from_name(name) {
                Some(attribute) => RequestField::Known(attribute),
                None => return Err(unknown(name)),
            },
        })
    }
}

fn unknown<E: Error>(name: &str) -> E {
    let own = ["cost", "costs", "peek", "namespace", "attributes"];
    let known = Attribute::ALL.into_iter().map(Attribute::name).chain(own);
    let hint = match nearest(name, known) {
        Some(meant) => format!("there is no such field; did you mean `{meant}`?"),
        None => {
            let fields = Attribute::ALL.into_iter().map(Attribute::name).chain(own).collect::<Vec<_>>().join(", ");
            format!("there is no such field; attributes of your own go under `attributes`, the fields are {fields}")
        }
    };
    fault(BodyErrorCode::UnknownField, &shown(name), hint)
}

/// Reads custom attributes.
struct CustomSeed<'s, 'a>(&'s mut Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'de: 'a, 'a> DeserializeSeed<'de> for CustomSeed<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de: 'a, 'a> Visitor<'de> for CustomSeed<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("attributes")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key_seed(TextSeed(PhantomData))? {
            let value = text(&mut map, &shown(&name))?;
            if self.0.len() == CUSTOM_MAX {
                return Err(fault(BodyErrorCode::TooMany, "", format_args!("holds more than {CUSTOM_MAX} attributes")));
            }
            if let Some(problem) = name_problem(&name, self.0) {
                return Err(fault(BodyErrorCode::BadName, &shown(&name), problem));
            }
            self.0.push((name, value));
        }
        Ok(())
    }
}

/// What is wrong with the name of a custom attribute, given the earlier ones.
fn name_problem(name: &str, others: &[(Cow<'_, str>, Cow<'_, str>)]) -> Option<&'static str> {
    Some(match name {
        "method" | "path" => {
            "comes from `endpoint`: write \"GET /path\" there; an entry of Envoy's descriptors is explained as \
             {\"domain\":…,\"descriptors\":[{\"entries\":[…]}]}"
        }
        name if Attribute::from_name(name).is_some() || name == "namespace" => "has a field of its own",
        name if !is_attribute(name) => "should be a lower-case letter, then up to 63 of a-z, 0-9, _, ., -",
        name if others.iter().any(|(other, _)| other == name) => "is there twice",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
