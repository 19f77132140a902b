//! Rules as plain data: the content of a file or a database row, with defaults filled in and nothing compiled.
//!
//! All fields are public, because YAML is only one of the sources. [`crate::check`] states what must hold between them.

mod grant;
mod limit;
mod meter;
mod normalized;
mod penalty;
mod plan;
mod policy;
mod quota;
mod schedule;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::endpoint::EndpointMatcher;
use crate::key::KeyBy;
use crate::normalize::Normalize;
use crate::path::{EscapedSlash, PathCase};
use crate::pattern::Matcher;
use crate::position::SourcePosition;
pub use grant::GrantSpec;
pub use limit::{Align, LimitAlgorithm, LimitSpec, ReservedSlots};
pub use meter::{MeterSpec, Unmetered};
pub use penalty::PenaltySpec;
pub use plan::{PLAN, PlanOrigin, PlanSpec};
pub use quota::{ANCHOR, QuotaSpec, TIME_ZONE};
pub use schedule::{PlanSchedule, is_dated, plan_at};
pub use tollgate_core::Enforcement;

pub use policy::{Consistency, LeaseSpec, Missing, OnFail, SoftSpec};

/// One file of rules, or one namespace of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFile {
    /// Version of the format; only 1 exists.
    pub version: u32,
    /// The namespace these rules are for.
    pub namespace: String,
    /// Name of the file that the rules were read from. Set by the loader; a rule without a line is not from that file.
    pub file_name: Option<Arc<str>>,
    /// Key of the rules without `key_by`; `None` means the client key.
    pub key_by: Option<KeyBy>,
    /// Failure policy of the rules without `on_fail`.
    pub on_fail: Option<OnFail>,
    /// Permits rules that refuse everything (RELIABILITY Y12).
    pub allow_block_all: bool,
    /// Permits a reload that removes most of the file: see [`shrinkage`](crate::shrinkage).
    pub allow_shrink: bool,
    /// How many leading bits of an IPv6 address identify a client.
    pub ipv6_prefix: u8,
    /// What happens to `%2F` in request paths.
    pub escaped_slash: EscapedSlash,
    /// Whether paths are case-sensitive, unless a rule sets it.
    pub case: PathCase,
    /// The Unicode form in which values are compared and counted.
    pub normalize: Normalize,
    /// The rules, in the order of the file, and then those of the plans.
    pub rules: Vec<RuleSpec>,
    /// The plans; their rules are in `rules` too, as [`expand`](crate::plan::expand) makes them.
    pub plans: Vec<PlanSpec>,
    /// Modes set by an operator, by name of the rule; they replace the rule's own.
    pub modes: BTreeMap<String, Enforcement>,
    /// Clients: tier, organisation, attributes.
    pub clients: Vec<ClientSpec>,
    /// Exceptions for single clients.
    pub overrides: Vec<OverrideSpec>,
    /// Units that single clients get once.
    pub grants: Vec<GrantSpec>,
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
            plans: Vec::new(),
            modes: BTreeMap::new(),
            clients: Vec::new(),
            overrides: Vec::new(),
            grants: Vec::new(),
        }
    }
}

impl RuleFile {
    /// The plan of clients without one.
    pub fn default_plan(&self) -> Option<&str> {
        self.plans.iter().find(|plan| plan.is_default).map(|plan| plan.name.as_str())
    }

    /// The path of the rule at an index of `rules`: `rules[2]`, or `plans.pro.limits[0]`.
    pub fn path_of(&self, index: usize) -> String {
        let origin = self.rules.get(index).and_then(|rule| rule.plan.as_deref());
        let within = origin.and_then(|origin| {
            let plan = self.plans.iter().find(|plan| plan.name == origin.plan)?;
            let number = plan.limits.iter().position(|limit| limit.name.as_ref() == Some(&origin.name))?;
            Some(format!("plans.{}.limits[{number}]", origin.plan))
        });
        within.unwrap_or_else(|| format!("rules[{index}]"))
    }
}

/// One rule: which requests it matches, what it counts by, how much it allows, and how it is enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSpec {
    /// Its name; without one it is identified by a digest of its content.
    pub name: Option<String>,
    /// Its position in the file.
    pub at: SourcePosition,
    /// Free text.
    pub description: Option<String>,
    /// Name that callers see instead of the rule's name.
    pub resource: Option<String>,
    /// Which requests it applies to.
    pub matches: MatchSpec,
    /// Attributes that identify a bucket.
    pub key_by: Option<KeyBy>,
    /// How much is allowed; `None` only with `unlimited`.
    pub limit: Option<LimitSpec>,
    /// Exempts the requests that it matches.
    pub unlimited: bool,
    /// Names of rules that do not apply where this one does.
    pub replaces: Vec<String>,
    /// Cost of a request.
    pub cost: Cost,
    /// Whether it is enforced.
    pub mode: Enforcement,
    /// How nodes share its buckets.
    pub consistency: Consistency,
    /// Failure policy while the store does not answer.
    pub on_fail: Option<OnFail>,
    /// Charges denied requests too.
    pub count_denied: bool,
    /// A limit in the request replaces `requests` and `window` of this rule.
    pub accept_limits: bool,
    /// How far reported usage may exceed the limit.
    pub max_debt: Option<u64>,
    /// Admits requests above the limit with falling probability.
    pub soft: Option<SoftSpec>,
    /// How requests without a key part are treated.
    pub missing: Missing,
    /// Number of buckets that one key is spread over.
    pub shards: u32,
    /// Share of the store's memory that its buckets may take, in percent.
    pub max_memory: Option<u8>,
    /// Size of one lease, with `consistency: leased`.
    pub lease: Option<LeaseSpec>,
    /// Whether its paths are case-sensitive; already applied to `matches`.
    pub case: Option<PathCase>,
    /// A page about this limit, for denied callers.
    pub doc_url: Option<String>,
    /// A stable code for denied callers, instead of `rate_limited`.
    pub error_code: Option<String>,
    /// What it counts.
    pub meter: MeterSpec,
    /// How requests that carry none of its meters are treated.
    pub unmetered: Unmetered,
    /// What happens to clients that are refused again and again.
    pub penalty: Option<PenaltySpec>,
    /// The plan that it comes from, if any.
    pub plan: Option<Box<PlanOrigin>>,
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
            meter: MeterSpec::default(),
            unmetered: Unmetered::default(),
            penalty: None,
            plan: None,
        }
    }
}

/// Conditions on a request; all must hold. Without conditions every request matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchSpec {
    /// Conditions on attributes, in the order of the file, each attribute once.
    pub attributes: Vec<(String, Matcher)>,
    /// Condition on method and path.
    pub endpoint: Option<EndpointMatcher>,
}

impl MatchSpec {
    /// Whether every request matches: there is no condition, or only `*`.
    pub fn is_wide_open(&self) -> bool {
        self.attributes.iter().all(|(_, matcher)| matcher.is_any())
            && self.endpoint.as_ref().is_none_or(EndpointMatcher::is_any)
    }
}

/// Cost of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The same for all requests.
    Fixed(u64),
    /// That of the first case that matches; 1 if none does.
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
    /// When it applies; a case without conditions is the default and comes last.
    pub matches: MatchSpec,
    /// The cost.
    pub cost: u64,
}

/// Attributes of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSpec {
    /// The client: `key:abc`, `user:42`, ...
    pub client_key: String,
    /// Its position in the file.
    pub at: SourcePosition,
    /// Its tier.
    pub tier: Option<String>,
    /// Its organisation.
    pub org: Option<String>,
    /// Its plans over time.
    pub plan: Option<PlanSchedule>,
    /// Further attributes.
    pub attributes: Vec<(String, String)>,
}

/// Numbers that replace those of one rule for one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideSpec {
    /// The client.
    pub client_key: String,
    /// Its position in the file.
    pub at: SourcePosition,
    /// Name of the rule, or [`OverrideSpec::EVERY_RULE`].
    pub rule: String,
    /// Units per window instead of the rule's; slots for a concurrency rule.
    pub requests: Option<u64>,
    /// Capacity instead of the rule's.
    pub burst: Option<u64>,
    /// Exempts the client from the rule.
    pub unlimited: bool,
    /// First instant at which it is in force, in nanoseconds since 1970.
    pub valid_from_ns: Option<u64>,
    /// First instant at which it is no longer in force.
    pub valid_until_ns: Option<u64>,
    /// Free text.
    pub reason: Option<String>,
}

impl OverrideSpec {
    /// In place of a rule: all rules of the namespace. No rule has this name.
    pub const EVERY_RULE: &str = "*";

    /// True if it is for all rules of the namespace.
    pub fn is_of_every_rule(&self) -> bool {
        self.rule == Self::EVERY_RULE
    }
}
