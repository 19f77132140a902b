//! What is asked: who wants to do what, at what cost. Borrowed, so that asking allocates nothing.

use std::fmt;

use crate::{SlotId, Span};

/// The attributes that have a name of their own. All others are custom ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Attribute {
    /// The caller as it names itself: `user:42`, `key:abc`, `ip:192.0.2.1`, `org:acme`, or anything.
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

/// One question to the limiter.
///
/// ```
/// use tollgate_core::{Attribute, Request};
/// let request = Request::new().with(Attribute::UserId, "42").with(Attribute::Endpoint, "POST /api/orders").cost(3);
/// assert_eq!(request.get(Attribute::UserId), Some("42"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Whose rules apply. Tenants do not see each other.
    pub namespace: &'a str,
    known: [Option<&'a str>; Attribute::ALL.len()],
    /// Attributes without a name of their own.
    pub custom: &'a [(&'a str, &'a str)],
    /// Units to charge; 0 reads. Multiplied by what a rule's own cost says.
    pub cost: u64,
    /// What to do with the cost.
    pub purpose: Purpose,
    /// Under which id slots of concurrency are held. Without one, concurrency rules do not apply.
    pub slot: Option<SlotId>,
    /// Importance under overload, 0 the least.
    pub priority: u8,
    /// The limit that the caller brings along. Only rules that accept limits look at it.
    pub limit: Option<AskedLimit>,
}

/// A limit that comes with a request: numbers instead of a rule's, for this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedLimit {
    /// Units per window; 0 refuses everything.
    pub requests: u64,
    /// Length of the window.
    pub window: Span,
}

/// What becomes of a request's cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Charge it if all rules agree.
    #[default]
    Consume,
    /// Only ask.
    Peek,
    /// Report usage after the fact: charge it whatever the rules say.
    Report,
    /// Nothing, and no rule rules on it: it is there for what it means for those decided together with it.
    Mention,
}

impl Request<'_> {
    /// The namespace of those who have only one.
    pub const DEFAULT_NAMESPACE: &'static str = "default";
}

impl<'a> Request<'a> {
    /// A request of cost 1 about nobody in particular.
    pub const fn new() -> Request<'a> {
        Request {
            namespace: Request::DEFAULT_NAMESPACE,
            known: [None; Attribute::ALL.len()],
            custom: &[],
            cost: 1,
            purpose: Purpose::Consume,
            slot: None,
            priority: 0,
            limit: None,
        }
    }

    /// The same request with one attribute more.
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

    /// The same request, only asking: nothing is charged.
    pub fn peek(self) -> Request<'a> {
        Request { purpose: Purpose::Peek, ..self }
    }

    /// The same request as a report of usage after the fact.
    pub fn report(self) -> Request<'a> {
        Request { purpose: Purpose::Report, ..self }
    }

    /// The same request, only mentioned among others.
    pub fn mention(self) -> Request<'a> {
        Request { purpose: Purpose::Mention, ..self }
    }

    /// The same request, holding slots of concurrency under `id`.
    pub fn holding(self, id: SlotId) -> Request<'a> {
        Request { slot: Some(id), ..self }
    }

    /// The same request with a limit of its own, for rules that accept one.
    pub fn asking(self, limit: AskedLimit) -> Request<'a> {
        Request { limit: Some(limit), ..self }
    }

    /// Sets one attribute.
    pub fn set(&mut self, attribute: Attribute, value: &'a str) {
        if let Some(place) = self.known.get_mut(attribute as usize) {
            *place = Some(value);
        }
    }

    /// An attribute's value as it was sent.
    pub fn get(&self, attribute: Attribute) -> Option<&'a str> {
        self.known.get(attribute as usize).copied().flatten()
    }
}

impl Default for Request<'_> {
    fn default() -> Self {
        Request::new()
    }
}
