//! Domains whose rules are files of envoyproxy/ratelimit: answered and counted as that service does.

use tollgate_core::Enforcement;
use tollgate_engine::{Decision, Ruling};
use tollgate_proto::HeaderValue;
use tollgate_proto::rls::RateLimitResponse;
use tollgate_proto::rls::rate_limit_response::{Code, DescriptorStatus};
use tollgate_ruleset::EnvoyRule;
use tollgate_telemetry::{RlsCallEnd, RlsObservation};

use super::metadata;
use super::read::ParsedRls;
use super::write::{count_before_others, is_over};
use crate::rls_config::RlsConfig;
use crate::service::Service;

impl RlsConfig {
    /// Completes the response of such a domain: overall code, metadata, headers and statistics.
    pub(super) fn complete(
        &self,
        service: &Service,
        parsed: &ParsedRls<'_>,
        rounds: &[Decision],
        response: &mut RateLimitResponse,
    ) {
        let over = |(decision, ruling, _): &(&Decision, &Ruling, &EnvoyRule)| {
            is_over(decision, ruling, |index| parsed.hits_in_order(index))
        };
        let rulings =
            rounds.iter().flat_map(|decision| decision.rulings().iter().map(move |ruling| (decision, ruling)));
        let mut rules: Vec<(&Decision, &Ruling, &EnvoyRule)> = rulings
            .filter_map(|(decision, ruling)| Some((decision, ruling, decision.rule(ruling)?.envoy.as_deref()?)))
            .collect();
        rules.sort_by_key(|(_, ruling, _)| ruling.request);
        for (decision, ruling, rule) in &rules {
            self.count(service, parsed, decision, ruling, rule);
        }
        let mut quotas = rules.iter().filter(|(_, _, rule)| rule.quota_mode).peekable();
        let spent = quotas.peek().is_some() && quotas.all(over);
        if spent && service.engine.enforcement() == Enforcement::Enforce {
            response.overall_code = Code::OverLimit.into();
        }
        if self.shadow && response.overall_code() == Code::OverLimit {
            response.overall_code = Code::Ok.into();
            service.rls_stats.calls.count(RlsCallEnd::Shadowed);
        }
        if self.metadata {
            let passing = rules.iter().filter(|rule| !over(rule)).filter_map(|(_, _, rule)| rule.metadata.as_ref());
            response.dynamic_metadata = Some(metadata::of(parsed.message, passing));
        }
        if let Some(names) = &self.headers {
            let is_quota = |index: usize| {
                rules.iter().any(|(_, ruling, rule)| usize::from(ruling.request) == index && rule.quota_mode)
            };
            response.response_headers_to_add = headers(names, response, is_quota);
        }
    }

    fn count(&self, service: &Service, parsed: &ParsedRls<'_>, decision: &Decision, ruling: &Ruling, rule: &EnvoyRule) {
        let Some((entries, hits)) = parsed.descriptor(ruling.request) else { return };
        let Some(outcome) = &ruling.outcome else { return };
        let near = (u128::from(outcome.limit) * u128::from(self.near_percent) / 100) as u64; // at most the limit
        let used = count_before_others(decision, ruling, |index| parsed.hits_in_order(index)).unwrap_or(outcome.used);
        let observation = RlsObservation { hits, used, limit: outcome.limit, near, shadow: rule.shadow_mode };
        service.rls_stats.count(&rule.stat_key(entries), &observation);
    }
}

/// Headers about the last descriptor that denies the request, or else about the one with the least left. Quota
/// descriptors deny nothing by themselves.
fn headers(names: &[String; 3], response: &RateLimitResponse, is_quota: impl Fn(usize) -> bool) -> Vec<HeaderValue> {
    let limited = || response.statuses.iter().enumerate().filter(|(_, status)| status.current_limit.is_some());
    let denies = |(index, status): &(usize, &DescriptorStatus)| status.code() == Code::OverLimit && !is_quota(*index);
    let least = || limited().min_by_key(|(_, status)| status.limit_remaining);
    let Some((_, status)) = limited().filter(denies).last().or_else(least) else { return Vec::new() };
    let limit = status.current_limit.as_ref().map_or(0, |limit| limit.requests_per_unit);
    let reset = status.duration_until_reset.as_ref().map_or(0, |until| until.seconds);
    let values = [limit.to_string(), status.limit_remaining.to_string(), reset.to_string()];
    let header = |(key, value): (&String, String)| HeaderValue { key: key.clone(), value, ..HeaderValue::default() };
    names.iter().zip(values).map(header).collect()
}
