//! Domains whose rules are files of envoyproxy/ratelimit: answered as that service answers, and counted as it counts.

use std::collections::BTreeMap;

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use tollgate_engine::{Decision, Ruling, Switch};
use tollgate_proto::HeaderValue;
use tollgate_proto::rls::RateLimitResponse;
use tollgate_proto::rls::rate_limit_response::{Code, DescriptorStatus};
use tollgate_rules::envoy::{EnvoyRule, Metadata};

use super::read::Asked;
use super::write::{count_before_others, is_over};
use crate::api::Shared;
use crate::config::EnvoySettings;
use crate::telemetry::Sight;

/// How they answer.
#[derive(Clone, Debug)]
pub struct Domains {
    near_percent: u64,
    shadow: bool,
    /// For limit, remaining and reset.
    headers: Option<[String; 3]>,
}

impl Default for Domains {
    fn default() -> Domains {
        Domains::new(&EnvoySettings::default())
    }
}

impl Domains {
    /// As it was configured.
    pub fn new(settings: &EnvoySettings) -> Domains {
        let EnvoySettings { near_limit, shadow, headers, .. } = settings;
        let headers = <[String; 3]>::try_from(headers.clone()).ok();
        Domains { near_percent: *near_limit as u64, shadow: *shadow, headers }
    }

    /// Says the rest about a request: whether all of it may pass, what goes along, and what is counted.
    pub(super) fn complete(
        &self,
        shared: &Shared,
        asked: &Asked<'_>,
        turns: &[Decision],
        response: &mut RateLimitResponse,
    ) {
        let over = |(decision, ruling, _): &(&Decision, &Ruling, &EnvoyRule)| {
            is_over(decision, ruling, |place| asked.hits_in_turn(place))
        };
        let rulings = turns.iter().flat_map(|decision| decision.rulings().iter().map(move |ruling| (decision, ruling)));
        let rules: Vec<(&Decision, &Ruling, &EnvoyRule)> = rulings
            .filter_map(|(decision, ruling)| Some((decision, ruling, decision.rule(ruling)?.envoy.as_deref()?)))
            .collect();
        for (decision, ruling, rule) in &rules {
            self.count(shared, asked, decision, ruling, rule);
        }
        let mut quotas = rules.iter().filter(|(_, _, rule)| rule.quota_mode).peekable();
        let spent = quotas.peek().is_some() && quotas.all(over);
        if spent && shared.engine.switch() == Switch::Enforce {
            response.overall_code = Code::OverLimit.into();
        }
        if self.shadow {
            response.overall_code = Code::Ok.into();
        }
        let passing = rules.iter().filter(|rule| !over(rule));
        let fields: BTreeMap<String, Value> =
            passing.filter_map(|(_, _, rule)| rule.metadata.as_ref()).flat_map(members).collect();
        response.dynamic_metadata = (!fields.is_empty()).then_some(Struct { fields });
        if let Some(names) = &self.headers {
            response.response_headers_to_add = headers(names, response);
        }
    }

    fn count(&self, shared: &Shared, asked: &Asked<'_>, decision: &Decision, ruling: &Ruling, rule: &EnvoyRule) {
        let Some((entries, hits)) = asked.descriptor(ruling.request) else { return };
        let Some(outcome) = &ruling.outcome else { return };
        let near = (u128::from(outcome.limit) * u128::from(self.near_percent) / 100) as u64; // at most the limit
        let used = count_before_others(decision, ruling, |place| asked.hits_in_turn(place)).unwrap_or(outcome.used);
        let sight = Sight { hits, used, limit: outcome.limit, near, shadow: rule.shadow_mode };
        shared.metrics.domains.count(&rule.stat_key(entries), &sight);
    }
}

/// About the descriptor that is over its limit, or else about the one with the least left.
fn headers(names: &[String; 3], response: &RateLimitResponse) -> Vec<HeaderValue> {
    let limited = || response.statuses.iter().filter(|status| status.current_limit.is_some());
    let over = |status: &&DescriptorStatus| status.code() == Code::OverLimit;
    let Some(status) = limited().find(over).or_else(|| limited().min_by_key(|status| status.limit_remaining)) else {
        return Vec::new();
    };
    let limit = status.current_limit.as_ref().map_or(0, |limit| limit.requests_per_unit);
    let reset = status.duration_until_reset.as_ref().map_or(0, |until| until.seconds);
    let values = [limit.to_string(), status.limit_remaining.to_string(), reset.to_string()];
    let header = |(key, value): (&String, String)| HeaderValue { key: key.clone(), value, ..HeaderValue::default() };
    names.iter().zip(values).map(header).collect()
}

/// What somebody wrote as a map; anything else has no name to go by.
fn members(metadata: &Metadata) -> impl Iterator<Item = (String, Value)> {
    let members = if let Metadata::Map(members) = metadata { members.as_slice() } else { &[] };
    members.iter().map(|(name, value)| (name.clone(), value_of(value)))
}

fn value_of(metadata: &Metadata) -> Value {
    let kind = match metadata {
        Metadata::Null => Kind::NullValue(0),
        Metadata::Bool(value) => Kind::BoolValue(*value),
        Metadata::Number(value) => Kind::NumberValue(*value),
        Metadata::Text(text) => Kind::StringValue(text.clone()),
        Metadata::List(items) => Kind::ListValue(ListValue { values: items.iter().map(value_of).collect() }),
        Metadata::Map(_) => Kind::StructValue(Struct { fields: members(metadata).collect() }),
    };
    Value { kind: Some(kind) }
}
