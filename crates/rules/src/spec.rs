//! Rules as plain data: what a file or a database row says, with defaults filled in and nothing compiled.
//!
//! Everything is public and constructible by hand, because YAML is only one of the sources. What must hold between
//! the fields is said once, in [`crate::check`].

mod limit;
mod normalized;
mod policy;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::endpoint::EndpointMatcher;
use crate::key::KeyBy;
use crate::normalize::Normalize;
use crate::path::{EscapedSlash, PathCase};
use crate::pattern::Matcher;
use crate::position::SourcePosition;
pub use limit::{Align, LimitAlgorithm, LimitSpec};
pub use policy::{Consistency, Enforcement, LeaseSpec, Missing, OnFail, SoftSpec};

/// One file of rules, or one namespace of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFile {
    /// Version of the format; 1 is the only one.
    pub version: u32,
    /// The namespace these rules are for.
    pub namespace: String,
    /// Name of the file that the rules were read from. Set by the loader; rules without a line of their own are not
    /// from that file.
    pub file_name: Option<Arc<str>>,
    /// Key of the rules that name none; `None` leaves the choice to the compiler.
    pub key_by: Option<KeyBy>,
    /// Failure policy of the rules that name none.
    pub on_fail: Option<OnFail>,
    /// Permits rules that refuse everything (RELIABILITY Y12).
    pub allow_block_all: bool,
    /// Permits that a file loses most of what it said while it is followed: see [`shrinkage`](crate::shrinkage).
    pub allow_shrink: bool,
    /// How many leading bits of an IPv6 address identify a client.
    pub ipv6_prefix: u8,
    /// What happens to `%2F` in request paths.
    pub escaped_slash: EscapedSlash,
    /// Whether paths differ by case, unless a rule says otherwise.
    pub case: PathCase,
    /// The Unicode form in which values are compared and counted.
    pub normalize: Normalize,
    /// The rules, in the order of the file.
    pub rules: Vec<RuleSpec>,
    /// Modes that hold instead of those that the rules name, by the name of the rule: an operator's switch.
    pub modes: BTreeMap<String, Enforcement>,
    /// What is known about clients.
    pub clients: Vec<ClientSpec>,
    /// Exceptions for single clients.
    pub overrides: Vec<OverrideSpec>,
}

impl Default for RuleFile {
    fn default() -> Self {
        Self {
            version: 1,
            namespace: "default".to_owned(),
            file_name: None,
            key_by: None,
            on_fail: None,
            allow_block_all: false,
            allow_shrink: false,
            ipv6_prefix: 64,
            escaped_slash: EscapedSlash::default(),
            case: PathCase::default(),
            normalize: Normalize::default(),
            rules: Vec::new(),
            modes: BTreeMap::new(),
            clients: Vec::new(),
            overrides: Vec::new(),
        }
    }
}

/// One rule: whom it is for, what it counts by, how much it allows, and what it does about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSpec {
    /// Its name; without one it is identified by a digest of its content.
    pub name: Option<String>,
    /// Where it stands.
    pub at: SourcePosition,
    /// For people.
    pub description: Option<String>,
    /// What callers are told instead of the name.
    pub resource: Option<String>,
    /// Which requests it applies to.
    pub matches: MatchSpec,
    /// What makes two requests share a bucket.
    pub key_by: Option<KeyBy>,
    /// How much is allowed; `None` only with `unlimited`.
    pub limit: Option<LimitSpec>,
    /// Exempts what it matches.
    pub unlimited: bool,
    /// Names of rules that do not apply where this one does.
    pub replaces: Vec<String>,
    /// What a request costs.
    pub cost: Cost,
    /// Whether it is enforced.
    pub mode: Enforcement,
    /// How its buckets are shared by nodes.
    pub consistency: Consistency,
    /// What happens when the store does not answer.
    pub on_fail: Option<OnFail>,
    /// Charges refused requests too.
    pub count_denied: bool,
    /// A limit that a request brings along replaces requests and window of this one.
    pub accept_limits: bool,
    /// How far forced usage may go beyond the limit.
    pub max_debt: Option<u64>,
    /// Admits above the limit with falling probability.
    pub soft: Option<SoftSpec>,
    /// What happens to requests that lack a key part.
    pub missing: Missing,
    /// Over how many buckets one hot key is spread.
    pub shards: u32,
    /// Share of the store's memory its buckets may take, in percent.
    pub max_memory: Option<u8>,
    /// Size of one lease, with `consistency: leased`.
    pub lease: Option<LeaseSpec>,
    /// Whether its paths differ by case; already applied to `matches`.
    pub case: Option<PathCase>,
    /// A page about this limit, for refused callers.
    pub doc_url: Option<String>,
    /// A stable code for refused callers, instead of `rate_limited`.
    pub error_code: Option<String>,
}

impl Default for RuleSpec {
    fn default() -> Self {
        Self {
            name: None,
            at: SourcePosition::default(),
            description: None,
            resource: None,
            matches: MatchSpec::default(),
            key_by: None,
            limit: None,
            unlimited: false,
            replaces: Vec::new(),
            cost: Cost::default(),
            mode: Enforcement::default(),
            consistency: Consistency::default(),
            on_fail: None,
            count_denied: false,
            accept_limits: false,
            max_debt: None,
            soft: None,
            missing: Missing::default(),
            shards: 1,
            max_memory: None,
            lease: None,
            case: None,
            doc_url: None,
            error_code: None,
        }
    }
}

/// Conditions on a request; all must hold, and none means every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchSpec {
    /// Conditions on attributes, in the order of the file, each attribute once.
    pub attributes: Vec<(String, Matcher)>,
    /// Condition on method and path.
    pub endpoint: Option<EndpointMatcher>,
}

impl MatchSpec {
    /// Whether nothing narrows it: no condition, or only `*`.
    pub fn is_wide_open(&self) -> bool {
        self.attributes.iter().all(|(_, matcher)| matcher.is_any())
            && self.endpoint.as_ref().is_none_or(EndpointMatcher::is_any)
    }
}

/// What a request costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The same for all.
    Fixed(u64),
    /// The first case that matches; 1 when none does.
    ByMatch(Vec<CostCase>),
}

impl Default for Cost {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

impl Cost {
    /// The highest cost it can name.
    pub fn highest(&self) -> u64 {
        match self {
            Self::Fixed(cost) => *cost,
            Self::ByMatch(cases) => cases.iter().map(|case| case.cost).max().unwrap_or(1),
        }
    }
}

/// One case of a cost list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostCase {
    /// When it applies; without conditions it is the default and the last one.
    pub matches: MatchSpec,
    /// What it costs.
    pub cost: u64,
}

/// What is known about one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSpec {
    /// Whom it is about: `key:abc`, `user:42`, ...
    pub client_key: String,
    /// Where it stands.
    pub at: SourcePosition,
    /// Its tier.
    pub tier: Option<String>,
    /// Its organisation.
    pub org: Option<String>,
    /// Whatever else rules match on.
    pub attributes: Vec<(String, String)>,
}

/// Other numbers of one rule for one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideSpec {
    /// Whom it is for.
    pub client_key: String,
    /// Where it stands.
    pub at: SourcePosition,
    /// Name of the rule.
    pub rule: String,
    /// Units per window instead of the rule's; slots for a concurrency rule.
    pub requests: Option<u64>,
    /// Capacity instead of the rule's.
    pub burst: Option<u64>,
    /// Exempts the client from the rule.
    pub unlimited: bool,
    /// First instant it holds, in nanoseconds since 1970.
    pub valid_from_ns: Option<u64>,
    /// First instant it holds no more.
    pub valid_until_ns: Option<u64>,
    /// For people.
    pub reason: Option<String>,
}
