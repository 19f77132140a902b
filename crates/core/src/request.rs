//! A request to the limiter. It borrows its texts, so that a decision allocates nothing.

use std::fmt;

use crate::{SlotId, Span};

/// The predefined attributes. All others are custom attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Attribute {
    /// The client as the caller names it: `user:42`, `key:abc`, `ip:192.0.2.1`, `org:acme`, or any other text.
    ClientKey,
    /// An API key.
    ApiKey,
    /// A user.
    UserId,
    /// An address.
    Ip,
    /// An organisation.
    Org,
    /// A plan such as `free` or `paid`.
    Tier,
    /// `METHOD /path`, or just `/path` for any method.
    Endpoint,
}

impl Attribute {
    /// All of them, in the order of their numbers.
    pub const ALL: [Attribute; 7] = [
        Attribute::ClientKey,
        Attribute::ApiKey,
        Attribute::UserId,
        Attribute::Ip,
        Attribute::Org,
        Attribute::Tier,
        Attribute::Endpoint,
    ];

    /// The name in rules and requests.
    pub const fn name(self) -> &'static str {
        match self {
            Attribute::ClientKey => "client_key",
            Attribute::ApiKey => "api_key",
            Attribute::UserId => "user_id",
            Attribute::Ip => "ip",
            Attribute::Org => "org",
            Attribute::Tier => "tier",
            Attribute::Endpoint => "endpoint",
        }
    }

    /// The attribute of that name.
    pub fn from_name(name: &str) -> Option<Attribute> {
        Attribute::ALL.into_iter().find(|attribute| attribute.name() == name)
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One request to the limiter.
///
/// ```
/// use tollgate_core::{Attribute, Request};
/// let request = Request::new().with(Attribute::UserId, "42").with(Attribute::Endpoint, "POST /api/orders").cost(3);
/// assert_eq!(request.get(Attribute::UserId), Some("42"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The namespace whose rules apply. Namespaces are isolated from each other.
    pub namespace: &'a str,
    known: [Option<&'a str>; Attribute::ALL.len()],
    /// Custom attributes: name and value.
    pub custom: &'a [(&'a str, &'a str)],
    /// Units to charge; 0 reads. Multiplied by the `cost` of a rule. The amount of the meter `requests`.
    pub cost: u64,
    /// Amounts of further meters, each name once. A rule charges the meter that it names, and does not apply to a
    /// request without it.
    pub costs: &'a [(&'a str, u64)],
    /// Amounts of meters that no rule counts are ignored. Otherwise they reject the request: a misspelt meter would never
    /// be charged.
    pub ignores_uncounted: bool,
    /// What to do with the cost.
    pub purpose: Purpose,
    /// The id under which concurrency slots are held. Without one, concurrency rules do not apply.
    pub slot: Option<SlotId>,
    /// Importance under overload; 0 is the lowest.
    pub priority: u8,
    /// A limit supplied by the caller, for rules that accept one.
    pub limit: Option<AskedLimit>,
}

/// A limit supplied with a request; it replaces the numbers of a rule for this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedLimit {
    /// Units per window; 0 refuses everything.
    pub requests: u64,
    /// Length of the window.
    pub window: Span,
}

/// What to do with the cost of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Charge it if all rules admit it.
    #[default]
    Consume,
    /// Read only.
    Peek,
    /// Report usage after the fact: charge it even if rules refuse.
    Report,
    /// Nothing: no rule is applied to it. It only affects the requests that are decided together with it.
    Mention,
}

impl Request<'_> {
    /// The namespace used when none is given.
    pub const DEFAULT_NAMESPACE: &'static str = "default";
    /// The meter that every request carries, as its [`cost`](Request::cost).
    pub const REQUESTS: &'static str = "requests";
}

impl<'a> Request<'a> {
    /// A request of cost 1 without attributes.
    pub const fn new() -> Request<'a> {
        Request {
            namespace: Request::DEFAULT_NAMESPACE,
            known: [None; Attribute::ALL.len()],
            custom: &[],
            cost: 1,
            costs: &[],
            ignores_uncounted: false,
            purpose: Purpose::Consume,
            slot: None,
            priority: 0,
            limit: None,
        }
    }

    /// The same request with one more attribute.
    pub fn with(mut self, attribute: Attribute, value: &'a str) -> Request<'a> {
        self.set(attribute, value);
        self
    }

    /// The same request with custom attributes.
    pub fn with_custom(self, custom: &'a [(&'a str, &'a str)]) -> Request<'a> {
        Request { custom, ..self }
    }

    /// The same request in another namespace.
    pub fn in_namespace(self, namespace: &'a str) -> Request<'a> {
        Request { namespace, ..self }
    }

    /// The same request at another cost.
    pub fn cost(self, cost: u64) -> Request<'a> {
        Request { cost, ..self }
    }

    /// The same request with amounts of further meters.
    pub fn with_costs(self, costs: &'a [(&'a str, u64)]) -> Request<'a> {
        Request { costs, ..self }
    }

    /// The same request, whose meters the server's own configuration names: those that no rule counts are ignored.
    pub fn ignoring_uncounted(self) -> Request<'a> {
        Request { ignores_uncounted: true, ..self }
    }

    /// The amount of a meter; `None` if the request does not carry it.
    #[inline]
    pub fn amount(&self, meter: &str) -> Option<u64> {
        match meter {
            Request::REQUESTS => Some(self.cost),
            _ => self.costs.iter().find(|(name, _)| *name == meter).map(|(_, amount)| *amount),
        }
    }

    /// The same request, read only: nothing is charged.
    pub fn peek(self) -> Request<'a> {
        Request { purpose: Purpose::Peek, ..self }
    }

    /// The same request as a report of usage after the fact.
    pub fn report(self) -> Request<'a> {
        Request { purpose: Purpose::Report, ..self }
    }

    /// The same request as context for others: see [`Purpose::Mention`].
    pub fn mention(self) -> Request<'a> {
        Request { purpose: Purpose::Mention, ..self }
    }

    /// The same request, holding concurrency slots under `id`.
    pub fn holding(self, id: SlotId) -> Request<'a> {
        Request { slot: Some(id), ..self }
    }

    /// The same request with its own limit, for rules that accept one.
    pub fn asking(self, limit: AskedLimit) -> Request<'a> {
        Request { limit: Some(limit), ..self }
    }

    /// Sets one attribute.
    pub fn set(&mut self, attribute: Attribute, value: &'a str) {
        if let Some(place) = self.known.get_mut(attribute as usize) {
            *place = Some(value);
        }
    }

    /// The value of an attribute as the caller sent it.
    pub fn get(&self, attribute: Attribute) -> Option<&'a str> {
        self.known.get(attribute as usize).copied().flatten()
    }
}

impl Default for Request<'_> {
    fn default() -> Self {
        Request::new()
    }
}
