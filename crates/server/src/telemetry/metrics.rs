//! Everything that is counted, and how to count it. Reading it is the business of a [`Scrape`](super::Scrape).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tollgate_core::{Purpose, Request, Span};
use tollgate_engine::{Decision, Generation, Mode, Ruling, Verdict};
use tollgate_rules::ruleset::RuleSet;
use tonic::Code;

use super::counter::Counter;
use super::domains::Domains;
use super::latency::Latency;
use super::resp::RespCounts;
use super::series::{Book, Kind, OTHER, Slot, Table};
use crate::grpc::Method;

/// The counts of one server.
#[derive(Debug)]
pub struct Metrics {
    pub(super) book: Book,
    pub(super) table: ArcSwap<Table>,
    /// Held by whoever makes the next table; others do not wait for it.
    adopting: Mutex<()>,
    pub(super) invalid: Counter,
    pub(super) store_failures: Counter,
    pub(super) fallback: [Counter; Policy::ALL.len()],
    pub(super) latency: Latency,
    pub(super) violations_written: Counter,
    pub(super) violations_dropped: Counter,
    opened: Counter,
    closed: Counter,
    pub(super) refused: [Counter; Refusal::ALL.len()],
    pub(super) resp: RespCounts,
    paths: &'static [&'static str],
    http: Vec<OnceLock<Counter>>,
    grpc: Vec<OnceLock<Counter>>,
    pub(super) panics: AtomicU64,
    /// By rule of an envoyproxy/ratelimit file.
    pub domains: Domains,
}

/// Why a connection was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There are too many.
    Full,
    /// Its address has too many.
    PerAddress,
    /// The handshake failed.
    Handshake,
}

impl Refusal {
    pub(super) const ALL: [Refusal; 3] = [Refusal::Full, Refusal::PerAddress, Refusal::Handshake];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Refusal::Full => "full",
            Refusal::PerAddress => "per_address",
            Refusal::Handshake => "handshake",
        }
    }
}

/// What decided while the store was away: the policy of the strictest rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Allow,
    Deny,
    Local,
}

impl Policy {
    pub(super) const ALL: [Policy; 3] = [Policy::Allow, Policy::Deny, Policy::Local];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Policy::Allow => "allow",
            Policy::Deny => "deny",
            Policy::Local => "local",
        }
    }

    const fn of(mode: Mode) -> Option<Policy> {
        match mode {
            Mode::Open => Some(Policy::Allow),
            Mode::Closed => Some(Policy::Deny),
            Mode::Fallback => Some(Policy::Local),
            Mode::Store | Mode::Lease | Mode::Async | Mode::Local | Mode::Overflow | Mode::Off => None,
        }
    }
}

/// The statuses that are told apart.
const STATUSES: [u16; 22] =
    [200, 204, 304, 400, 401, 403, 404, 405, 406, 408, 409, 411, 413, 414, 415, 417, 422, 429, 431, 500, 503, 505];

/// The codes of gRPC, in the order of their numbers.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new(&[])
    }
}

impl Metrics {
    /// Nothing counted yet. HTTP requests are told apart by `paths`; every other path is one of its own.
    pub fn new(paths: &'static [&'static str]) -> Metrics {
        let book = Book::default();
        let table = Table::new(0, &RuleSet::empty(), &book);
        Metrics {
            book,
            table: ArcSwap::from_pointee(table),
            adopting: Mutex::default(),
            invalid: Counter::default(),
            store_failures: Counter::default(),
            fallback: Policy::ALL.map(|_| Counter::default()),
            latency: Latency::default(),
            violations_written: Counter::default(),
            violations_dropped: Counter::default(),
            opened: Counter::default(),
            closed: Counter::default(),
            refused: Refusal::ALL.map(|_| Counter::default()),
            resp: RespCounts::default(),
            paths,
            http: (0..(paths.len() + 1) * (STATUSES.len() + 1)).map(|_| OnceLock::new()).collect(),
            grpc: (0..(Method::ALL.len() + 1) * CODES.len()).map(|_| OnceLock::new()).collect(),
            panics: AtomicU64::new(0),
            domains: Domains::default(),
        }
    }

    /// Gets ready to count for a generation. Worth calling after every swap; otherwise its first decision does it.
    pub fn adopt(&self, generation: &Generation) {
        self.make_table(generation.number, &generation.rules);
    }

    /// Notes how long it took to answer.
    #[inline]
    pub fn observe_latency(&self, span: Span) {
        self.latency.observe(span);
    }

    /// A connection was accepted.
    pub fn connection_opened(&self) {
        self.opened.add_one();
    }

    /// A connection that was accepted is no more.
    pub fn connection_closed(&self) {
        self.closed.add_one();
    }

    /// A connection was refused.
    pub fn connection_refused(&self, reason: Refusal) {
        if let Some(counter) = self.refused.get(reason as usize) {
            counter.add_one();
        }
    }

    /// What is counted of RESP.
    #[inline]
    pub fn resp(&self) -> &RespCounts {
        &self.resp
    }

    /// An HTTP request was answered.
    pub fn http_answered(&self, path: &str, status: u16) {
        let path = self.paths.iter().position(|known| *known == path).unwrap_or(self.paths.len());
        let status = STATUSES.binary_search(&status).unwrap_or(STATUSES.len());
        if let Some(counter) = self.http.get(path * (STATUSES.len() + 1) + status) {
            counter.get_or_init(Counter::default).add_one();
        }
    }

    /// A call by gRPC was answered; `None` for methods that there are not.
    pub fn grpc_answered(&self, method: Option<Method>, code: Code) {
        let method = method.map_or(Method::ALL.len(), |method| method as usize);
        if let Some(counter) = self.grpc.get(method * CODES.len() + code as usize) {
            counter.get_or_init(Counter::default).add_one();
        }
    }

    /// Refusals were written down.
    pub fn violations_written(&self, count: u64) {
        self.violations_written.add(count);
    }

    /// Refusals were not written down, and never will be.
    pub fn violations_dropped(&self, count: u64) {
        self.violations_dropped.add(count);
    }

    /// How many were, and were not.
    #[cfg(test)]
    pub(crate) fn violations(&self) -> (u64, u64) {
        (self.violations_written.sum(), self.violations_dropped.sum())
    }

    /// Something panicked and was caught.
    pub fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the requests of one decision, each once: at the rule that decided. Requests that only ask are left out.
    #[inline]
    pub(super) fn decided(&self, requests: &[Request<'_>], decision: &Decision) {
        let kind = match decision.verdict {
            Verdict::Allow => Kind::Allowed,
            Verdict::Deny => Kind::Denied,
            Verdict::Invalid(_) => return requests.iter().for_each(|_| self.invalid.add_one()),
        };
        if let Some(policy) = Policy::of(decision.mode) {
            self.fell_back(policy, requests);
        }
        let mut table = self.table.load();
        if table.generation < decision.generation() {
            self.make_table(decision.generation(), decision.rules());
            table = self.table.load();
        }
        if table.generation != decision.generation() {
            return self.decided_elsewhere(&table, kind, requests, decision);
        }
        let deciding = decision.deciding().and_then(|ruling| table.rule(ruling.rule));
        for request in requests.iter().filter(|request| is_counted(request)) {
            let slot = deciding.unwrap_or_else(|| table.undecided(request.namespace));
            let tier = table.tier(decision.rules().tier_of(request));
            table.count(&self.book, slot, kind, tier, decision.mode);
        }
        for ruling in refused_in_shadow(requests, decision) {
            if let Some(slot) = table.rule(ruling.rule) {
                slot.count_shadow(&self.book);
            }
        }
    }

    #[cold]
    fn fell_back(&self, policy: Policy, requests: &[Request<'_>]) {
        if let Some(counter) = self.fallback.get(policy as usize) {
            requests.iter().filter(|request| is_counted(request)).for_each(|_| counter.add_one());
        }
    }

    /// A decision of a generation that is no longer the present one, or not yet.
    #[cold]
    fn decided_elsewhere(&self, table: &Table, kind: Kind, requests: &[Request<'_>], decision: &Decision) {
        let (book, mode) = (&self.book, decision.mode);
        for request in requests.iter().filter(|request| is_counted(request)) {
            let tier = table.tier(decision.rules().tier_of(request));
            match decision.deciding_rule() {
                Some((rule, _)) => table.count_foreign(book, rule, kind, tier, mode),
                None => table.count(book, table.undecided(request.namespace), kind, tier, mode),
            }
        }
        let shadows = refused_in_shadow(requests, decision).filter_map(|ruling| decision.rule(ruling));
        shadows.for_each(|rule| Slot::of(rule).count_shadow(book));
    }

    #[cold]
    fn make_table(&self, number: u64, rules: &RuleSet) {
        let Some(_guard) = self.adopting.try_lock() else { return };
        if self.table.load().generation < number {
            self.table.store(Table::new(number, rules, &self.book).into());
        }
    }

    /// Connections accepted and not yet closed.
    pub(super) fn connections(&self) -> u64 {
        let closed = self.closed.sum(); // first: what is opened meanwhile must not look closed before
        self.opened.sum().saturating_sub(closed)
    }

    /// Path, status and count of every HTTP answer given so far.
    pub(super) fn http(&self) -> Vec<(&'static str, String, u64)> {
        let width = STATUSES.len() + 1;
        let counted = self.http.iter().enumerate().filter_map(|(place, counter)| Some((place, counter.get()?.sum())));
        let named = counted.map(|(place, count)| {
            let path = self.paths.get(place / width).copied().unwrap_or(OTHER);
            let status = STATUSES.get(place % width).map_or(OTHER.to_owned(), u16::to_string);
            (path, status, count)
        });
        named.collect()
    }
}

/// Method, code and count of every answer by gRPC given so far.
impl Metrics {
    pub(super) fn grpc(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let counted = self.grpc.iter().enumerate().filter_map(|(place, counter)| Some((place, counter.get()?.sum())));
        counted.map(|(place, count)| {
            let method = Method::ALL.get(place / CODES.len()).map_or(OTHER, |method| method.path());
            (method, CODES.get(place % CODES.len()).copied().unwrap_or(OTHER), count)
        })
    }
}

/// Requests that only ask charge nothing and stop nobody; those that are only mentioned ask nothing.
fn is_counted(request: &Request<'_>) -> bool {
    !matches!(request.purpose, Purpose::Peek | Purpose::Mention)
}

/// What shadow rules would have refused, of requests that count.
fn refused_in_shadow<'a>(requests: &'a [Request<'_>], decision: &'a Decision) -> impl Iterator<Item = &'a Ruling> {
    let refused = decision.rulings().iter().filter(|ruling| !ruling.enforced && ruling.refused());
    refused.filter(|ruling| requests.get(usize::from(ruling.request)).is_some_and(is_counted))
}
