//! Compiles one rule.

use std::sync::{Arc, OnceLock};

use tollgate_core::{Attribute, KeyHasher, LeaseSize, LimitError, Owner, Secret, Sharing};
use tollgate_rules::KeyBy;
use tollgate_rules::spec::{Consistency, Cost, LeaseSpec, MatchSpec, MeterSpec, ReservedSlots, RuleSpec};

use super::attributes::Attributes;
use super::input::{CompileOptions, Defaults};
use super::naming::GeneratedName;
use super::quota::{CalendarAttributes, CompiledQuota};
use super::rule::{Conditions, RuleBody, limit_of};
use crate::directory::{CLIENT_ANCHOR, CLIENT_TIME_ZONE, ORG_ANCHOR, ORG_TIME_ZONE};
use crate::lookup::{IndexedEndpoint, IndexedMatcher};

/// Attributes that identify one client, and one organisation.
const CLIENTS: [Attribute; 4] = [Attribute::ClientKey, Attribute::ApiKey, Attribute::UserId, Attribute::Ip];
const ORGS: [Attribute; 1] = [Attribute::Org];

/// Precedes the name within plans in a digest; no rule has such a name.
const OF_PLANS: &[u8] = b"rule of plans";

/// Whether a part of the key is always one of these attributes.
fn identifies(key_by: &KeyBy, attributes: &[Attribute]) -> bool {
    let is_one = |name: &String| Attribute::from_name(name).is_some_and(|attribute| attributes.contains(&attribute));
    key_by.parts.iter().any(|part| part.iter().all(is_one))
}

/// Compiles a rule with a [key](Defaults::fill) and a name, its own or a generated one.
pub(super) fn compile_body(
    defaults: Defaults<'_>,
    generated: Option<&GeneratedName>,
    spec: Arc<RuleSpec>,
    options: &CompileOptions,
    attributes: &mut Attributes,
) -> Result<RuleBody, LimitError> {
    let key_by = spec.key_by.clone().unwrap_or_else(|| defaults.key());
    let name = spec.name.as_ref().or(generated.map(|names| &names.name)).cloned().unwrap_or_default();
    let identity_name = spec.name.as_ref().or(generated.map(|names| &names.identity)).unwrap_or(&name);
    let limit = spec.limit.as_ref().filter(|_| !spec.unlimited).map(|limit| limit_of(limit, &spec)).transpose()?;
    let meters = meters_of(&spec.meter);
    let quota = spec.limit.as_ref().and_then(|limit| limit.quota.as_deref()).map(|quota| CompiledQuota {
        calendar: quota.calendar,
        rollover: quota.rollover,
        overdraft: quota.overdraft,
        of_client: identifies(&key_by, &CLIENTS).then(|| CalendarAttributes {
            time_zone: attributes.intern(CLIENT_TIME_ZONE),
            anchor: attributes.intern(CLIENT_ANCHOR),
        }),
        of_org: (identifies(&key_by, &CLIENTS) || identifies(&key_by, &ORGS)).then(|| CalendarAttributes {
            time_zone: attributes.intern(ORG_TIME_ZONE),
            anchor: attributes.intern(ORG_ANCHOR),
        }),
    });
    let mut hasher = KeyHasher::new(options.secret);
    let mut public = KeyHasher::new(Secret::new([0; 16]));
    hasher.part(defaults.namespace.as_bytes());
    public.part(defaults.namespace.as_bytes());
    // Buckets of a plan's rule belong to its name within plans: a client keeps its usage when its plan changes. The
    // owner is the rule itself: each has its own share of the memory, and its own name in answers.
    match &spec.plan {
        Some(origin) => [OF_PLANS, origin.name.as_bytes()].iter().for_each(|part| hasher.part(part)),
        None => hasher.part(identity_name.as_bytes()),
    }
    public.part(identity_name.as_bytes());
    for hasher in [&mut hasher, &mut public] {
        hasher.word(limit.map_or(u64::MAX, |limit| limit.kind() as u64));
        hasher.word(limit.map_or(0, |limit| limit.window().nanos()));
        // Other units are another count.
        for (meter, weight) in &meters {
            hasher.part(meter.as_bytes());
            hasher.word(*weight);
        }
    }
    let [bits, _] = public.finish().0;
    let mut identity = KeyHasher::new(options.secret);
    identity.part(b"identity");
    identity.part(defaults.namespace.as_bytes());
    let [namespace, _] = identity.finish().0;
    let mode = defaults.modes.and_then(|modes| modes.get(&name)).copied();
    Ok(RuleBody {
        replaced_mode: mode.map(|_| spec.mode),
        file_name: defaults.file_name(&spec),
        namespace: defaults.namespace.to_owned(),
        resource: spec.resource.clone().unwrap_or_else(|| name.clone()),
        name,
        on_fail: defaults.on_fail(&spec),
        limit,
        envoy: None,
        conditions: conditions_of(&spec.matches, attributes),
        key: key_by.parts.iter().map(|part| part.iter().map(|name| attributes.intern(name)).collect()).collect(),
        costs: costs_of(&spec.cost, attributes),
        quota,
        reserved_by: spec
            .limit
            .as_ref()
            .and_then(|limit| limit.reserved.as_ref())
            .map(|_| attributes.intern(ReservedSlots::ATTRIBUTE)),
        meters,
        hasher,
        owner: Owner { id: bits as u32, share: spec.max_memory.unwrap_or(100), namespace: namespace as u32 },
        identity,
        sharing: sharing_of(&spec),
        seed: options.seed,
        fingerprint: OnceLock::new(),
        spec: match mode {
            Some(mode) => Arc::new(RuleSpec { mode, ..RuleSpec::clone(&spec) }),
            None => spec,
        },
    })
}

fn sharing_of(spec: &RuleSpec) -> Sharing {
    let size = match spec.lease {
        None => LeaseSize::Auto,
        Some(LeaseSpec::Tokens(tokens)) => LeaseSize::Units(u32::try_from(tokens).unwrap_or(u32::MAX)),
        Some(LeaseSpec::Seconds(seconds)) => {
            LeaseSize::Millis(u32::try_from(seconds.saturating_mul(1000)).unwrap_or(u32::MAX))
        }
    };
    match spec.consistency {
        Consistency::Exact => Sharing::Exact,
        Consistency::Leased => Sharing::Leased(size),
        Consistency::Async => Sharing::Async,
        Consistency::Local => Sharing::Local,
    }
}

fn conditions_of(spec: &MatchSpec, attributes: &mut Attributes) -> Conditions {
    let by_number =
        spec.attributes.iter().map(|(name, matcher)| (attributes.intern(name), IndexedMatcher::new(matcher.clone())));
    Conditions { attributes: by_number.collect(), endpoint: spec.endpoint.clone().map(IndexedEndpoint::new) }
}

fn meters_of(meter: &MeterSpec) -> Vec<(String, u64)> {
    match meter {
        MeterSpec::Requests => Vec::new(),
        MeterSpec::Weighted(weights) => weights.clone(),
    }
}

fn costs_of(cost: &Cost, attributes: &mut Attributes) -> Vec<(Conditions, u64)> {
    match cost {
        Cost::Fixed(1) => Vec::new(),
        Cost::Fixed(cost) => vec![(Conditions::default(), *cost)],
        Cost::ByMatch(cases) => {
            cases.iter().map(|case| (conditions_of(&case.matches, attributes), case.cost)).collect()
        }
    }
}
