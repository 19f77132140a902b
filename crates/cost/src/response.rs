//! What a request has cost, read from its response while it passes.

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName};

use crate::amounts::MeterAmounts;
use crate::json::{JsonEvent, JsonPath, JsonScanner, JsonSink, amount};
use crate::request::RequestCost;
use crate::spec::{CostFrom, CostSource, CostSpec};

/// Reads the amounts that a response says. What it does not say keeps its estimate.
#[derive(Debug)]
pub struct ResponseCost {
    spec: Arc<CostSpec>,
    /// Units by source, in the order of the route: reserved ones until they are counted.
    units: Vec<u64>,
    /// Reads the body, if a source needs it.
    scanner: Option<JsonScanner>,
    bytes: u64,
}

impl ResponseCost {
    /// Reads the response to a request that was charged this cost.
    pub fn new(spec: Arc<CostSpec>, reserved: &RequestCost) -> ResponseCost {
        let reads_body = sources(&spec).any(|source| matches!(source.from, CostFrom::ResponseJson(_)));
        let units = reserved.units.clone();
        ResponseCost { units, scanner: reads_body.then(JsonScanner::tolerant), bytes: 0, spec }
    }

    /// The head of the response. A body with a content coding is not read, only counted.
    pub fn head(&mut self, headers: &HeaderMap) {
        if headers.contains_key(http::header::CONTENT_ENCODING) {
            self.scanner = None;
        }
        self.count(|from| match from {
            CostFrom::ResponseHeader(name) => header_amount(headers, name),
            _ => None,
        });
    }

    /// A chunk of the response's body.
    pub fn chunk(&mut self, chunk: &[u8]) {
        self.bytes = self.bytes.saturating_add(chunk.len() as u64);
        let Some(scanner) = &mut self.scanner else { return };
        let mut values = PointedValues { spec: &self.spec, units: &mut self.units };
        if scanner.feed(chunk, &mut values).is_err() || scanner.is_done() {
            self.scanner = None;
        }
    }

    /// The body of the request has passed, with this many bytes.
    pub fn request_bytes(&mut self, bytes: u64) {
        self.count(|from| (*from == CostFrom::RequestBytes).then_some(bytes));
    }

    /// The response has ended, after this time.
    pub fn end(&mut self, upstream_time: Duration) {
        let (bytes, ms) = (self.bytes, u64::try_from(upstream_time.as_millis()).unwrap_or(u64::MAX));
        self.count(|from| match from {
            CostFrom::ResponseBytes => Some(bytes),
            CostFrom::UpstreamMs => Some(ms),
            _ => None,
        });
    }

    /// The request never reached a server: what a response would have said is nothing.
    pub fn unsent(&mut self) {
        self.count(|from| from.is_response().then_some(0));
    }

    /// What to settle: every meter of the route, with what was counted or else what was reserved.
    pub fn amounts(&self) -> MeterAmounts {
        let mut amounts = MeterAmounts::default();
        let meters = self.spec.meters.iter().flat_map(|meter| meter.sources.iter().map(|_| &meter.meter));
        meters.zip(&self.units).for_each(|(meter, units)| amounts.add(meter, *units));
        amounts
    }

    /// Notes what `read` finds for each source.
    fn count(&mut self, read: impl Fn(&CostFrom) -> Option<u64>) {
        for (source, units) in sources(&self.spec).zip(&mut self.units) {
            if let Some(counted) = read(&source.from) {
                *units = source.units(counted);
            }
        }
    }
}

fn sources(spec: &CostSpec) -> impl Iterator<Item = &CostSource> {
    spec.meters.iter().flat_map(|meter| &meter.sources)
}

/// The amount in a header field: digits and nothing else. Of several fields, the last one counts, which is the one that
/// the server nearest to us added.
fn header_amount(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let text = headers.get_all(name).iter().next_back()?.to_str().ok()?.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| amount(text))?
}

/// Takes the numbers that the sources point at.
struct PointedValues<'a> {
    spec: &'a CostSpec,
    units: &'a mut Vec<u64>,
}

impl JsonSink for PointedValues<'_> {
    fn event(&mut self, path: &JsonPath, event: JsonEvent<'_>, _offset: u64) {
        let JsonEvent::Number(text) = event else { return };
        let counted = if text.is_empty() { Some(u64::MAX) } else { amount(text) };
        for (source, units) in sources(self.spec).zip(self.units.iter_mut()) {
            match (&source.from, counted) {
                (CostFrom::ResponseJson(pointer), Some(counted)) if pointer.is_at(path) => {
                    *units = source.units(counted);
                }
                _ => {}
            }
        }
    }
}
