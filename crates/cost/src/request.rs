//! What a request costs before it is forwarded.

use crate::amounts::MeterAmounts;
use crate::error::{CostError, CostErrorKind};
use crate::graphql::GraphqlFacts;
use crate::json::{JsonEvent, JsonPath, JsonPointer, JsonSink, scan_all};
use crate::spec::{CostFrom, CostSource, CostSpec, ITEMS_BYTES_MAX};

/// A request, as far as its cost depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostFacts<'a> {
    /// The method.
    pub method: &'a str,
    /// The query as it was sent, without `?`.
    pub query: &'a str,
    /// `Content-Type`, if there is one.
    pub content_type: Option<&'a str>,
    /// `Content-Length`, if there is one.
    pub content_length: Option<u64>,
    /// The whole body, if [`CostSpec::body_bytes_max`] asks for it.
    pub body: &'a [u8],
}

/// What is charged for a request before it is forwarded: amounts that are known, and estimates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestCost {
    /// Amounts by meter. Those of language models are not among them: they come from
    /// [`LlmRequest`](crate::llm::LlmRequest).
    pub amounts: MeterAmounts,
    /// Units by source, in the order of the route.
    pub(crate) units: Vec<u64>,
}

impl CostSpec {
    /// The cost of a request.
    pub fn request(&self, request: &CostFacts<'_>) -> Result<RequestCost, CostError> {
        let mut cost = RequestCost::default();
        for meter in &self.meters {
            for source in &meter.sources {
                let units = source.reservation(request)?;
                cost.units.push(units);
                cost.amounts.add(&meter.meter, units);
            }
        }
        Ok(cost)
    }
}

impl CostSource {
    fn reservation(&self, request: &CostFacts<'_>) -> Result<u64, CostError> {
        let counted = match &self.from {
            CostFrom::Fixed(amount) => return Ok(*amount),
            CostFrom::RequestBytes => match request.content_length {
                Some(length) => length,
                None if !request.body.is_empty() => request.body.len() as u64,
                None => return Ok(self.estimate),
            },
            CostFrom::QueryItems(name) => query_items(request.query, name),
            CostFrom::JsonItems(pointer) => json_items(request.body, pointer)?,
            CostFrom::JsonRpcCalls => json_items(request.body, &JsonPointer::default())?,
            CostFrom::Graphql(spec) => spec.cost(&GraphqlFacts {
                method: request.method,
                query: request.query,
                content_type: request.content_type,
                body: request.body,
            })?,
            CostFrom::ResponseHeader(_)
            | CostFrom::ResponseJson(_)
            | CostFrom::ResponseBytes
            | CostFrom::UpstreamMs => {
                return Ok(self.estimate);
            }
        };
        match self.max.filter(|max| counted > *max) {
            Some(max) => Err(self.too_much(counted, max)),
            None => Ok(self.units(counted)),
        }
    }

    fn too_much(&self, counted: u64, max: u64) -> CostError {
        match self.from {
            CostFrom::RequestBytes => {
                CostErrorKind::BodyTooLarge.error(format!("the body has {counted} bytes; {max} are allowed"))
            }
            CostFrom::Graphql(_) => {
                CostErrorKind::QueryTooExpensive.error(format!("the query costs {counted} units; {max} are allowed"))
            }
            _ => CostErrorKind::BatchTooLarge.error(format!("the request has {counted} items; {max} are allowed")),
        }
    }
}

/// Values of a parameter, at least one: `ids=1,2,3`, `ids=1&ids=2`, `ids[]=1&ids[]=2`.
fn query_items(query: &str, name: &str) -> u64 {
    let is_named = |key: &str| {
        let rest = key.strip_prefix(name)?;
        (rest.is_empty() || (rest.starts_with('[') && rest.ends_with(']'))).then_some(())
    };
    let values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| is_named(key).is_some());
    let count: usize = values.map(|(_, value)| value.split(',').filter(|item| !item.is_empty()).count()).sum();
    (count as u64).max(1)
}

/// Items of a list; anything else, or nothing, is one item.
fn json_items(body: &[u8], pointer: &JsonPointer) -> Result<u64, CostError> {
    if body.len() > ITEMS_BYTES_MAX {
        return Err(CostErrorKind::BodyTooLarge.error("the body is larger than 1 MiB"));
    }
    if body.is_empty() {
        return Ok(1);
    }
    let mut items = ItemCount { pointer, count: 0 };
    scan_all(body, &mut items).map_err(CostError::of_json)?;
    Ok(items.count.max(1))
}

/// Counts the items of a list; of a list that is there twice, the items of both.
struct ItemCount<'a> {
    pointer: &'a JsonPointer,
    count: u64,
}

impl JsonSink for ItemCount<'_> {
    fn event(&mut self, path: &JsonPath, event: JsonEvent<'_>, _offset: u64) {
        let is_item = !matches!(event, JsonEvent::End | JsonEvent::Key { .. }) && path.depth() > 0;
        if is_item && path.index(path.depth() - 1).is_some() && self.pointer.is_parent_of(path) {
            self.count = self.count.saturating_add(1);
        }
    }
}
